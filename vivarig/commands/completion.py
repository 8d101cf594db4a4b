"""``vivarig completion``: what a shell needs to complete verbs, options and their choices."""

from __future__ import annotations

import argparse

from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Print a script that teaches your shell to complete verbs, options and their choices. It is made once and costs "
    "nothing when the shell starts; make it again after an update."
)
EXAMPLE = """  vivarig completion bash > ~/.local/share/bash-completion/completions/vivarig
  vivarig completion zsh > ~/.zfunc/_vivarig
  vivarig completion fish > ~/.config/fish/completions/vivarig.fish"""

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=SHELLS, help="whose completion")


def run(args: argparse.Namespace) -> CommandReport:
    """Print the script of a shell; ``args.parsers`` is every verb with its line and its parser."""
    verbs = _verbs(args.parsers)
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](verbs)
    return CommandReport(script.splitlines(), {"shell": args.shell, "verbs": list(verbs)})


#: Option of a verb: its names, help in one line, choices.
_Option = tuple[tuple[str, ...], str, tuple[str, ...]]


def _verbs(parsers: dict[str, tuple[str, argparse.ArgumentParser]]) -> dict[str, tuple[str, list[_Option]]]:
    """Every verb with its line and its options, asked of its own parser."""
    found: dict[str, tuple[str, list[_Option]]] = {}
    for verb, (words, parser) in parsers.items():
        options: list[_Option] = []
        for action in parser._actions:
            choices = tuple(str(choice) for choice in action.choices) if action.choices is not None else ()
            if isinstance(action, argparse._SubParsersAction):
                options.append(((), "", choices))
            elif action.option_strings or choices:
                options.append((tuple(action.option_strings), (action.help or "").split("\n")[0], choices))
        found[verb] = (words, options)
    return found


def _bash(verbs: dict[str, tuple[str, list[_Option]]]) -> str:
    cases = []
    for verb, (_, options) in verbs.items():
        words = [name for names, _, _ in options for name in names if name.startswith("--")]
        words += [choice for names, _, choices in options if not names for choice in choices]
        chosen = "".join(
            f'\n      {"|".join(names)}) COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$word")); return;;'
            for names, _, choices in options
            if names and choices
        )
        cases.append(
            f'    {verb})\n      case "$before" in{chosen}\n      esac\n'
            f'      COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word") $(compgen -f -- "$word"));;'
        )
    every = " ".join((*verbs, "--help", "--version"))
    return "\n".join(
        [
            "# completion of vivarig for bash; made by `vivarig completion bash`",
            "_vivarig() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            f'  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{every}" -- "$word")); return; fi',
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            "}",
            "complete -o filenames -F _vivarig vivarig",
        ]
    )


def _zsh(verbs: dict[str, tuple[str, list[_Option]]]) -> str:
    """Zsh reads the script for bash."""
    return "#compdef vivarig\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(verbs)


def _fish(verbs: dict[str, tuple[str, list[_Option]]]) -> str:
    lines = ["# completion of vivarig for fish; made by `vivarig completion fish`"]
    for verb, (words, options) in verbs.items():
        lines.append(f"complete -c vivarig -n __fish_use_subcommand -a {verb} -d {_quoted(words)}")
        seen = f"-n '__fish_seen_subcommand_from {verb}'"
        for names, text, choices in options:
            long = " ".join(f"-l {name[2:]}" for name in names if name.startswith("--"))
            given = f" -xa {_quoted(' '.join(choices))}" if choices else ""
            if long or given:
                lines.append(f"complete -c vivarig {seen} {long}{given} -d {_quoted(text)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
