// The name of the joint, marker or bead under the mouse. The scene is viser's; it tells of clicks only, so this asks our own
// server, one question at a time, with the mouse's place as shares of the picture.
(() => {
  const tip = document.createElement("div");
  tip.id = "vivarig-name";
  tip.style.cssText = "position:fixed;display:none;pointer-events:none;z-index:9;padding:2px 7px;border-radius:4px;" +
    "background:#222d;color:#fff;font:13px sans-serif";
  document.body.append(tip);
  let socket = null, waiting = false, next = null;
  const send = () => {
    if (!next || waiting) return;
    if (!socket || socket.readyState > 1) {
      socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/mend`);
      socket.onopen = send;
      socket.onclose = () => { waiting = false; tip.style.display = "none"; };
      socket.onmessage = (message) => {
        waiting = false;
        tip.textContent = JSON.parse(message.data).name || "";
        tip.style.display = tip.textContent ? "block" : "none";
        send();
      };
    }
    if (socket.readyState !== 1) return;
    waiting = true;
    socket.send(JSON.stringify({ do: "name", ...next }));
    next = null;
  };
  window.addEventListener("pointermove", (e) => {
    if (e.target.tagName !== "CANVAS" || e.buttons) { tip.style.display = "none"; next = null; return; }
    const box = e.target.getBoundingClientRect();
    next = { x: (e.clientX - box.left) / box.width, y: (e.clientY - box.top) / box.height, aspect: box.width / box.height };
    tip.style.left = `${e.clientX + 14}px`;
    tip.style.top = `${e.clientY + 10}px`;
    send();
  }, true);
})();
