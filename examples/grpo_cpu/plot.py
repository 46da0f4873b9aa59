"""Draws a run as an SVG: the reward of each step, and the size of its delta."""
WIDTH, LEFT, RIGHT, HEIGHT, TOP, GAP = 760, 70, 740, 200, 40, 60
REWARD, SOLVED, DELTA, EVENT = '#1f5fa8', '#d9822b', '#3a7d44', '#b03a48'
SMOOTH = 10  # steps of the line through the dots


def draw(path, steps, events):
    """steps: the lines of the trainer's log. events: [(step, text)]."""
    steps = [step for step in steps if 'reward' in step]
    last = steps[-1]['step']
    deltas = [100 * step['delta'] / step['checkpoint'] for step in steps]
    bottom = TOP + HEIGHT
    most = max(deltas) * 1.1
    parts = [*frame(TOP, last, 1, 'reward', '{:.1f}'),
             *curve([step['reward'] for step in steps], last, TOP, 1, REWARD),
             *curve([step['solved'] for step in steps], last, TOP, 1, SOLVED),
             text(RIGHT - 8, bottom - 26, 'share of letters in place (reward)', REWARD, 'end'),
             text(RIGHT - 8, bottom - 10, 'share of answers all right', SOLVED, 'end'),
             *frame(bottom + GAP, last, most, 'delta, % of checkpoint', '{:.1f}'),
             *curve(deltas, last, bottom + GAP, most, DELTA)]
    for number, what in events:
        x = place(number, last)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom + GAP + HEIGHT}" '
                     f'stroke="{EVENT}" stroke-dasharray="4 3"/>')
        parts.append(text(x, TOP - 8, what, EVENT, 'end' if what == 'killed' else 'start'))
    parts.append(text((LEFT + RIGHT) / 2, bottom + GAP + HEIGHT + 38, 'step', '#333', 'middle'))
    height = bottom + GAP + HEIGHT + 50
    with open(path, 'w') as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                   f'width="{WIDTH}" font-family="sans-serif" font-size="12">\n'
                   f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
                   + '\n'.join(parts) + '\n</svg>\n')


def place(step, last):
    return LEFT + (RIGHT - LEFT) * step / last


def text(x, y, what, colour, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{what}</text>'


def frame(top, last, most, title, form):
    """The axes of a panel, from 0 to `most`."""
    bottom = top + HEIGHT
    yield text(LEFT, top - 8, title, '#333', 'middle')
    for tick in range(6):
        y = bottom - HEIGHT * tick / 5
        yield (f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
               f'stroke="{"#999" if tick == 0 else "#e4e4e4"}"/>')
        yield text(LEFT - 6, y + 4, form.format(most * tick / 5), '#333', 'end')
        step = round(last * tick / 5)
        yield text(place(step, last), bottom + 16, step, '#333', 'middle')


def curve(values, last, top, most, colour):
    """A dot for each step from 1 on, and a line of their mean over the last steps."""
    def height(value):
        return top + HEIGHT * (1 - value / most)
    line = []
    for index, value in enumerate(values):
        x = place(index + 1, last)
        recent = values[max(0, index + 1 - SMOOTH):index + 1]
        line.append(f'{x:.1f},{height(sum(recent) / len(recent)):.1f}')
        yield (f'<circle cx="{x:.1f}" cy="{height(value):.1f}" r="1.6" fill="{colour}" '
               'opacity=".35"/>')
    yield f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-width="2"/>'
