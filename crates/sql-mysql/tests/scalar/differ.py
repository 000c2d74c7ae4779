"""Compares a file of expressions (scalar/tests/corpus.txt, or what random_expressions.py wrote) with a server.

    CORPUS=file UPDATE=1 cargo test -p sql-mysql --lib recorded     # writes what this crate answers
    python3 differ.py file socket                               # asks the server at the socket, prints what differs

Not part of `make test`: it needs a server of the MySQL family. Known differences stand at the head of corpus.txt.
"""
import re
import subprocess
import sys

SESSION = (
    "set timestamp=1795264496.789012, time_zone='+00:00', "
    "sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO', "
    "collation_connection={collation}"
)


def ask(expressions, socket, collation):
    """The outcome of each expression: its value with the codes of its warnings, or the error's code."""
    statements = [SESSION.format(collation=collation)]
    for place, expression in enumerate(expressions):
        # A statement over a table clears the warnings of the one before.
        statements += ["select 0 from information_schema.engines where engine = ''", f"select '@@{place}'",
                       f"select {expression}", "show warnings"]
    client = subprocess.run(
        ["mariadb", "-S", socket, "-N", "-B", "--force", "--default-character-set=utf8mb4"],
        input=";\n".join(statements) + ";\n", capture_output=True, text=True, errors="replace", timeout=600)
    errors = {int(line): code for code, line in re.findall(r"^ERROR (\d+) \(\w+\) at line (\d+):", client.stderr, re.M)}
    lines, place = {}, None
    for line in client.stdout.split("\n"):
        mark = re.match(r"^@@(\d+)$", line)
        if mark:
            place = int(mark.group(1))
            lines[place] = []
        elif place is not None:
            lines[place].append(line)
    for place in range(len(expressions)):
        if 4 * place + 4 in errors:
            yield "error " + errors[4 * place + 4]
            continue
        values, warnings = [], ""
        for line in lines.get(place, []):
            warning = re.match(r"^(Warning|Note|Error)\t(\d+)\t", line)
            if warning is None:
                values.append(line)
            elif warning.group(1) != "Note":
                warnings += " !" + warning.group(2)
        yield (values[0] if values else "") + warnings


def own(line):
    """What the file says, as `ask` would say it."""
    _, kind, outcome = (line.split("\t") + ["", ""])[:3]
    if kind == "error":
        return "error " + outcome.split()[0]
    if outcome.startswith("error"):
        return "error " + outcome.split()[1]
    if ("binary" in kind or "blob" in kind) and outcome.startswith("0x"):
        return bytes.fromhex(outcome.split()[0][2:]).decode("utf8", "replace").replace("\0", "\\0")
    return outcome


def main(path, socket, collation="utf8mb4_uca1400_nopad_ai_ci"):
    with open(path, encoding="utf8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("--")]
    expressions = [line.split("\t")[0] for line in lines]
    different = 0
    for line, theirs in zip(lines, ask(expressions, socket, collation)):
        ours = own(line)
        if ours != theirs:
            different += 1
            print(f"{line.split(chr(9))[0]}\n    ours   {ours}\n    theirs {theirs}")
    print(different, "of", len(lines), "differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
