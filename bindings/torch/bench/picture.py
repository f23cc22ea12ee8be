"""A picture of ratios without anything to install: bars as SVG."""
import math
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH = 15, 330, 560
COLORS = ((0.9, "#c0392b"), (1.0, "#d9a441"), (math.inf, "#3b7dbd"))  # below 0.9, below 1, the rest


def bars(lines):
    """|lines|: (name, ratio or None). The axis is logarithmic, and bars begin at 1: left of it we are slower."""
    ratios = [ratio for _, ratio in lines if ratio]
    low, high = min([0.5, *ratios]), max([2.0, *ratios])
    place = lambda ratio: LEFT + WIDTH * math.log(ratio / low) / math.log(high / low)  # noqa: E731
    height = ROW * (len(lines) + 3)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for mark in (0.01, 0.03, 0.1, 0.25, 0.5, 0.9, 1, 2, 4, 10):
        if low <= mark <= high:
            x = place(mark)
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ROW * 1.5:.1f}" y2="{height}" stroke="{"#333" if mark == 1 else "#ccc"}"/>'
                       f'<text x="{x:.1f}" y="{ROW}" text-anchor="middle">{mark:g}</text>')
    for i, (name, ratio) in enumerate(lines):
        y = ROW * (i + 2)
        out.append(f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{escape(name)}</text>')
        if ratio:
            color = next(color for limit, color in COLORS if ratio < limit)
            a, b = sorted((place(1), place(ratio)))
            out.append(f'<rect x="{a:.1f}" y="{y}" width="{b - a:.1f}" height="{ROW - 3}" fill="{color}"/>'
                       f'<text x="{b + 4:.1f}" y="{y + 10}">{ratio:.2f}</text>')
        else:
            out.append(f'<text x="{place(1) + 4:.1f}" y="{y + 10}" fill="#888">none</text>')
    return "\n".join([*out, "</svg>", ""])
