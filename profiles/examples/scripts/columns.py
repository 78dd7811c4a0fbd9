"""Summarises the columns of a CSV file. Installed as /usr/local/lib/boxmaker/columns.py, readable by everyone."""

import csv
import statistics
import sys


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def summary(name, values):
    told = f"{name}: {len(values)} values, {len(set(values))} different"
    numbers = [number(value) for value in values]
    if values and None not in numbers:
        least, mean, greatest = min(numbers), statistics.mean(numbers), max(numbers)
        told += f", {least:g} to {greatest:g}, mean {mean:g}"
    return told


def main(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        columns = {name: [] for name in rows.fieldnames or []}
        for row in rows:
            for name, values in columns.items():
                if row[name]:
                    values.append(row[name])
    for name, values in columns.items():
        print(summary(name, values))


main(sys.argv[1])
