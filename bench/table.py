"""What benches print: one table of Markdown, which --write also puts between two markers of a document."""
import datetime
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def geomean(values):
    values = [v for v in values if v == v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def threads_str(n):
    return f"{n} thread{'s' if n != 1 else ''}"


def measured(args):
    """How what stands below it was measured: the beginning of a sentence."""
    return f"Measured {datetime.date.today().isoformat()} on {cpu_name()}, {threads_str(args.threads)}"


def replace_part(path, marker, new):
    """What stands between the two comments that name the marker."""
    before, after = path.read_text().split(f"<!-- {marker} -->\n")[::2]
    path.write_text(f"{before}<!-- {marker} -->\n{new}<!-- {marker} -->\n{after}")


class Table:
    """Its rows are printed as they come."""

    def __init__(self, columns):
        self.rows, self.lines = [], []
        self.add(columns)
        self.line("|" + "---|" * len(columns))

    def line(self, line):
        self.lines.append(line)
        print(line, flush=True)

    def add(self, cells):
        self.rows.append(cells)
        self.line("| " + " | ".join(cells) + " |")

    def write(self, document, marker, told):
        """Below `told`, between the markers of ROOT / document."""
        replace_part(ROOT / document, marker, "\n".join([told, "", *self.lines]) + "\n")
