// The explorer of the report: plots, a body in space, images and the list of stretches share one frame.
"use strict";
document.body.classList.add("js");
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const wholes = (text) => new Int32Array(bytes(text).buffer);
  const shorts = (text) => new Uint16Array(bytes(text).buffer);
  const COLOUR = ["#1f6f8b", "#e08a00", "#c0392b"];
  const WORD = ["trusted", "doubtful", "lost"];
  const trust = bytes(data.trust);
  const last = Math.max(data.frames - 1, 0);
  const trustAt = (f) => (trust.length ? trust[Math.min(trust.length - 1, Math.floor((f * trust.length) / data.frames))] : 0);
  const listeners = [];
  let frame = -1;

  function setFrame(wanted, from) {
    const next = Math.min(last, Math.max(0, Math.round(wanted)));
    if (next === frame) return;
    frame = next;
    for (const one of listeners) if (one !== from) one(frame);
  }

  // ---- the slider and what is said beside it
  const slider = by("frame"), said = by("said"), play = by("play");
  slider.max = last;
  slider.addEventListener("input", () => setFrame(+slider.value));
  listeners.push((f) => {
    slider.value = f;
    said.textContent = `frame ${f}, ${(f / data.rate).toFixed(3)} s` + (trust.length ? `: ${WORD[trustAt(f)]}` : "");
    said.style.color = COLOUR[trustAt(f)];
  });
  let timer = null;
  play.addEventListener("click", () => {
    play.textContent = timer ? "Play" : "Stop";
    if (timer) { clearInterval(timer); timer = null; return; }
    timer = setInterval(() => setFrame(frame >= last ? 0 : frame + 1), Math.max(33, 1000 / data.rate));
  });
  document.addEventListener("keydown", (e) => {
    if (e.target.tagName === "SELECT" || e.target.tagName === "INPUT") return;
    if (e.key === "ArrowRight") setFrame(frame + 1);
    if (e.key === "ArrowLeft") setFrame(frame - 1);
  });

  // ---- the strip of images: the nearest one is shown large
  const strip = Array.from(document.querySelectorAll("#strip img")), look = by("look");
  const strips = data.strip.map((one) => one.frame);
  const nearest = (list, f) => {
    let best = 0;
    for (let k = 1; k < list.length; k++) if (Math.abs(list[k] - f) < Math.abs(list[best] - f)) best = k;
    return best;
  };
  if (strip.length) {
    listeners.push((f) => {
      const k = nearest(strips, f);
      if (strip[k].classList.contains("here")) return;
      strip.forEach((image, n) => image.classList.toggle("here", n === k));
      look.src = strip[k].src;
      look.dataset.frame = strips[k];
      look.alt = `images of frame ${strips[k]}`;
      const box = by("strip"), at = strip[k];
      box.scrollLeft = at.offsetLeft - box.offsetLeft - (box.clientWidth - at.clientWidth) / 2;
    });
    strip.forEach((image, k) => image.addEventListener("click", () => setFrame(strips[k])));
  }

  // ---- the body in space
  const canvas = by("space"), pen = canvas.getContext("2d");
  const view = { yaw: 0.6, pitch: 0.35, zoom: 1 };
  function placed(set) {
    if (!set) return null;
    const at = shorts(set.at), frames = wholes(set.frames), per = at.length / frames.length;
    return { frames, count: per / 3, read(k, out) {
      let any = false; // points that are missing are not drawn
      for (let i = 0; i < per; i++) {
        const v = at[k * per + i];
        out[i] = v === 65535 ? NaN : set.low[i % 3] + v * set.step;
        any ||= v !== 65535;
      }
      return any;
    } };
  }
  const body = placed(data.body), surface = placed(data.surface);
  const faces = data.surface ? shorts(data.surface.faces) : [];
  const jointTrust = data.body ? bytes(data.body.trust) : [];
  const limbOf = data.surface ? bytes(data.surface.limbs) : [], limbTrust = data.surface ? bytes(data.surface.trust) : [];
  const joints = body ? new Float64Array(3 * body.count) : [];
  const skin = surface ? new Float64Array(3 * surface.count) : [];
  function size() {
    const set = body || surface, points = body ? joints : skin;
    if (!set) return 1;
    set.read(Math.floor(set.frames.length / 2), points);
    let reach = 0;
    for (let a = 0; a < 3; a++) {
      let low = Infinity, high = -Infinity;
      for (let i = a; i < points.length; i += 3) if (isFinite(points[i])) { low = Math.min(low, points[i]); high = Math.max(high, points[i]); }
      if (high > low) reach = Math.max(reach, high - low);
    }
    return reach || 1;
  }
  const reach = size();
  let shown = [];

  function draw(f) {
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (!w) return;
    if (canvas.width !== Math.round(w * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, w, h);
    const kb = body ? nearestSorted(body.frames, f) : 0, ks = surface ? nearestSorted(surface.frames, f) : 0;
    const hasBody = body && body.read(kb, joints), hasSkin = surface && surface.read(ks, skin);
    shown = [];
    if (!hasBody && !hasSkin) { pen.fillStyle = "#777"; pen.font = "14px system-ui"; pen.fillText("not tracked here", 14, 24); return; }
    const points = hasBody ? joints : skin, middle = [0, 0, 0];
    let count = 0;
    for (let i = 0; i < points.length; i += 3) {
      if (!isFinite(points[i])) continue;
      count++;
      for (let a = 0; a < 3; a++) middle[a] += points[i + a];
    }
    for (let a = 0; a < 3; a++) middle[a] /= count;
    const cy = Math.cos(view.yaw), sy = Math.sin(view.yaw), cp = Math.cos(view.pitch), sp = Math.sin(view.pitch);
    const scale = (0.62 * view.zoom * Math.min(w, h)) / reach;
    const see = (x, y, z) => {
      x -= middle[0]; y -= middle[1]; z -= middle[2];
      const r = x * cy + y * sy, away = -x * sy + y * cy;
      return [w / 2 + scale * r, h / 2 - scale * (z * cp + away * sp), away * cp - z * sp];
    };
    floor(see, middle);
    if (hasSkin && by("skin").checked) paintSkin(see, ks);
    if (hasBody && by("bones").checked) paintBones(see, kb);
    pen.fillStyle = "#888"; pen.font = "12px system-ui";
    pen.fillText(`${nice(reach / 2)} mm squares`, 10, h - 10);
  }
  const nice = (v) => { const p = Math.pow(10, Math.floor(Math.log10(v))); return v / p >= 5 ? 5 * p : v / p >= 2 ? 2 * p : p; };
  function floor(see, middle) {
    const step = nice(reach / 2), low = Math.abs(middle[2]) < 2 * reach ? Math.min(0, middle[2]) : middle[2] - reach / 2;
    const x0 = Math.round(middle[0] / step) * step, y0 = Math.round(middle[1] / step) * step;
    pen.strokeStyle = "#dcdcdc"; pen.lineWidth = 1; pen.beginPath();
    for (let k = -4; k <= 4; k++)
      for (const [a, b] of [[[x0 + k * step, y0 - 4 * step], [x0 + k * step, y0 + 4 * step]], [[x0 - 4 * step, y0 + k * step], [x0 + 4 * step, y0 + k * step]]]) {
        const p = see(a[0], a[1], low), q = see(b[0], b[1], low);
        pen.moveTo(p[0], p[1]); pen.lineTo(q[0], q[1]);
      }
    pen.stroke();
  }
  function paintSkin(see, k0) {
    const limbs = limbTrust.length / surface.frames.length;
    const n = skin.length / 3, at = new Array(n);
    for (let i = 0; i < n; i++) at[i] = see(skin[3 * i], skin[3 * i + 1], skin[3 * i + 2]);
    const order = [];
    for (let k = 0; k < faces.length; k += 3) {
      const a = at[faces[k]], b = at[faces[k + 1]], c = at[faces[k + 2]];
      const turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
      if (turn < 0) order.push([a[2] + b[2] + c[2], k, turn]);
    }
    order.sort((p, q) => q[0] - p[0]);
    const tints = [[120, 160, 200], [240, 186, 70], [222, 100, 80]];
    pen.globalAlpha = 0.8;
    for (const [, k, turn] of order) {
      const a = at[faces[k]], b = at[faces[k + 1]], c = at[faces[k + 2]];
      const lx = b[0] - a[0], ly = b[1] - a[1], lz = b[2] - a[2], mx = c[0] - a[0], my = c[1] - a[1], mz = c[2] - a[2];
      const wide = Math.hypot(ly * mz - lz * my, lz * mx - lx * mz, turn);
      const tint = tints[limbTrust[k0 * limbs + limbOf[faces[k]]]];
      const light = 0.45 + 0.55 * Math.min(1, -turn / (wide || 1));
      pen.fillStyle = pen.strokeStyle = `rgb(${tint.map((v) => Math.round(v * light)).join(",")})`;
      pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.lineTo(c[0], c[1]); pen.closePath();
      pen.fill(); pen.lineWidth = 0.6; pen.stroke();
    }
    pen.globalAlpha = 1;
  }
  function paintBones(see, k) {
    const n = body.count, at = [];
    for (let i = 0; i < n; i++) at.push(see(joints[3 * i], joints[3 * i + 1], joints[3 * i + 2]));
    pen.lineCap = "round";
    for (const [width, dark] of [[5, true], [3, false]])
      data.body.parents.forEach((parent, i) => {
        if (parent < 0) return;
        const level = Math.max(jointTrust[k * n + i], jointTrust[k * n + parent]);
        pen.strokeStyle = dark ? "#fff" : level ? COLOUR[level] : "#223";
        pen.lineWidth = width; pen.beginPath(); pen.moveTo(at[i][0], at[i][1]); pen.lineTo(at[parent][0], at[parent][1]); pen.stroke();
      });
    at.forEach((p, i) => {
      pen.fillStyle = jointTrust[k * n + i] ? COLOUR[jointTrust[k * n + i]] : "#223";
      pen.beginPath(); pen.arc(p[0], p[1], 3.2, 0, 7); pen.fill();
    });
    shown = at;
  }
  function nearestSorted(list, f) {
    let a = 0, b = list.length - 1;
    while (a < b) { const m = (a + b) >> 1; if (list[m] < f) a = m + 1; else b = m; }
    return a > 0 && f - list[a - 1] < list[a] - f ? a - 1 : a;
  }
  listeners.push(draw);
  by("skin").addEventListener("change", () => draw(frame));
  by("bones").addEventListener("change", () => draw(frame));
  let held = null;
  canvas.addEventListener("pointerdown", (e) => { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (e) => {
    if (held) {
      view.yaw += (e.clientX - held[0]) * 0.01;
      view.pitch = Math.max(-1.5, Math.min(1.5, view.pitch + (e.clientY - held[1]) * 0.01));
      held = [e.clientX, e.clientY];
      draw(frame);
      return;
    }
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    const k = shown.findIndex((p) => Math.hypot(p[0] - x, p[1] - y) < 7);
    canvas.title = k < 0 ? "drag to turn, wheel to come nearer" : data.body.names[k];
  });
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    view.zoom = Math.max(0.3, Math.min(8, view.zoom * Math.exp(-e.deltaY * 0.001)));
    draw(frame);
  }, { passive: false });

  // ---- plots: one cursor, one stretch of time
  const charts = [], place = by("plots");
  let zooming = false;
  function zoom(min, max) {
    zooming = true;
    for (const chart of charts) chart.setScale("x", { min, max });
    zooming = false;
    document.body.dataset.zoom = `${Math.round(min)}:${Math.round(max)}`;
    by("whole").hidden = min <= 0 && max >= last;
  }
  const HUES = ["#1f6f8b", "#c0392b", "#2e8b57", "#8e5ea2", "#b9770e", "#3a6ea5", "#7a7a7a", "#a0522d"];
  const sideless = (name) => name.replace(/^(left|right) /, "");
  const bands = { hooks: { drawClear: (u) => {
    const c = u.ctx, per = data.frames / trust.length;
    c.save();
    for (let a = 0; a < trust.length; ) {
      let b = a;
      while (b < trust.length && trust[b] === trust[a]) b++;
      if (trust[a]) {
        const x0 = Math.max(u.bbox.left, u.valToPos(a * per - 0.5, "x", true)), x1 = Math.min(u.bbox.left + u.bbox.width, u.valToPos(b * per - 0.5, "x", true));
        c.fillStyle = trust[a] === 1 ? "rgba(246,213,92,.4)" : "rgba(237,85,59,.35)";
        if (x1 > x0) c.fillRect(x0, u.bbox.top, x1 - x0, u.bbox.height);
      }
      a = b;
    }
    c.restore();
  }, draw: (u) => {
    const x = u.valToPos(frame, "x", true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
    u.ctx.save(); u.ctx.strokeStyle = "#222"; u.ctx.lineWidth = window.devicePixelRatio || 1; u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top); u.ctx.lineTo(x, u.bbox.top + u.bbox.height); u.ctx.stroke(); u.ctx.restore();
  } } };

  function chart(plot, wanted, box) {
    const x = Array.from(floats(plot.x));
    const chosen = plot.names.map((name, k) => [name, k]).filter(([name]) => !wanted || sideless(name) === wanted);
    const series = [{ label: "frame" }], columns = [x];
    chosen.forEach(([name, k], n) => {
      series.push({ label: name, stroke: plot.names.length > 1 && n === 0 && !wanted ? "#222" : HUES[n % HUES.length], width: n === 0 ? 1.6 : 1, points: { show: false },
        value: (u, v) => (v == null ? "-" : v.toFixed(Math.abs(v) < 10 ? 3 : 1)) });
      columns.push(Array.from(floats(plot.y[k]), (v) => (Number.isNaN(v) ? null : v)));
    });
    return new uPlot({
      width: box.clientWidth, height: 150, series, plugins: [bands],
      cursor: { sync: { key: "vivarig", scales: ["x", null] }, drag: { x: true, y: false, dist: 6 }, y: false },
      scales: { x: { time: false } }, legend: { show: chosen.length > 1, live: chosen.length <= 9 },
      axes: [{ size: 28 }, { size: 52, label: plot.unit, labelSize: 18, labelFont: "12px system-ui", font: "11px system-ui" }],
      hooks: {
        setCursor: [(u) => { if (u.cursor.event && u.cursor.left >= 0) setFrame(u.posToVal(u.cursor.left, "x")); }],
        setScale: [(u, key) => { if (key === "x" && !zooming && u.status === 1) zoom(u.scales.x.min, u.scales.x.max); }],
      },
    }, columns, box);
  }
  for (const plot of data.plots) {
    const box = document.createElement("div"), head = document.createElement("h3"), at = charts.length;
    head.textContent = `${plot.title} (${plot.unit})`;
    box.className = "plot";
    box.append(head);
    place.append(box);
    let wanted = null;
    if (plot.choose) {
      const pick = document.createElement("select");
      pick.setAttribute("aria-label", plot.title);
      for (const name of new Set(plot.names.map(sideless))) pick.add(new Option(name, name));
      wanted = pick.value;
      head.append(" ", pick);
      pick.addEventListener("change", () => {
        const { min, max } = charts[at].scales.x;
        charts[at].destroy();
        charts[at] = chart(plot, pick.value, box);
        charts[at].setScale("x", { min, max });
      });
    }
    charts.push(chart(plot, wanted, box));
  }
  listeners.push(() => { for (const one of charts) { one.redraw(false); one.setLegend({ idx: nearestSorted(one.data[0], frame) }, false); } });
  by("whole").addEventListener("click", () => zoom(0, last));
  window.addEventListener("resize", () => {
    for (const one of charts) one.setSize({ width: place.clientWidth, height: 150 });
    draw(frame);
  });

  // ---- the list of stretches and the line of trust
  document.querySelectorAll("[data-goto]").forEach((row) => {
    const go = () => {
      const first = +row.dataset.first, end = +row.dataset.last, room = Math.max(5, (end - first) / 2);
      zoom(Math.max(0, first - room), Math.min(last, end + room));
      setFrame(+row.dataset.goto);
      document.querySelectorAll("[data-goto].here").forEach((one) => one.classList.remove("here"));
      row.classList.add("here");
      by("explorer").scrollIntoView({ behavior: "smooth", block: "start" });
    };
    row.tabIndex = 0;
    row.addEventListener("click", go);
    row.addEventListener("keydown", (e) => { if (e.key === "Enter") go(); });
  });
  const line = by("timeline");
  if (line) {
    const mark = by("now"), left = +line.dataset.left, span = +line.dataset.span;
    const at = (e) => {
      const box = line.getBoundingClientRect(), x = ((e.clientX - box.left) / box.width) * line.viewBox.baseVal.width;
      setFrame(((x - left) / span) * data.frames - 0.5);
    };
    line.addEventListener("click", at);
    line.addEventListener("pointermove", (e) => { if (e.buttons) at(e); });
    listeners.push((f) => { const x = left + ((f + 0.5) / data.frames) * span; mark.setAttribute("x1", x); mark.setAttribute("x2", x); });
  }

  const first = document.querySelector("[data-goto]");
  setFrame(first ? +first.dataset.goto : Math.floor(last / 2));
  document.body.dataset.frame = frame;
  listeners.push((f) => { document.body.dataset.frame = f; });
})();
