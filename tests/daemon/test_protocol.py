"""The pages of docs/protocol against the route tables: each route has a heading on the page of its
face, each heading names routes that the server has, and the section below it has the whole frame.

A heading is "### `METHODS /path?marker`, ... (operations)". Where it has NAME, the section's table
says which words that stands for, and which operation each is.
"""

import collections
import glob
import os
import re
import subprocess
import unittest

from tests.support.daemon import SOURCE
from tests.support.matrix import face_of, routes

PAGES = os.path.join(SOURCE, 'docs', 'protocol')
HEADING = re.compile(r'(#{1,6}) (.*)')
ROUTE = re.compile(r'`([A-Z, ]+) (/[^`?]*)(?:\?([^`]*))?`')
OPERATIONS = re.compile(r"\(([\w' ,]+)\)(?:,|$)")
BRACES = re.compile(r'\{([\w,]+)\}(\w+)')
COMMAND = re.compile(r'\b(curl|aws) ')
FRAME = ('Request:', 'Reply:', 'Errors:')
# What cites a section: PAGE.md, or a link to it, and the section's title.
CITATION = re.compile(r'protocol/(\w+)\.md(?:\]\([^)]*\))?, ((?:"[^"]+"(?:, | and )?)+)')
LINE_START = re.compile(r'\n[ \t]*(?:\*|#|//)?[ \t]*')

Section = collections.namedtuple('Section', 'place title text')
Claim = collections.namedtuple('Claim', 'section method pattern query operations')


def read(path):
    with open(path) as file:
        return file.read()


def fenced(text):
    """(line, what the fence around it is of, text) of each: None outside of fences."""
    fence = None
    for number, line in enumerate(text.split('\n'), 1):
        if line.startswith('```'):
            fence = line[3:] if fence is None else None
        else:
            yield number, fence, line


def headings(text):
    """(line, level, title) of each."""
    for number, fence, line in fenced(text):
        found = HEADING.fullmatch(line)
        if found and fence is None:
            yield number, len(found[1]), found[2]


def commands(text):
    """The lines to try: those in fences of no language."""
    return '\n'.join(line for _, fence, line in fenced(text) if fence == '')


def sections(path):
    """Those of routes: each with all below it, up to the next heading that is no lower."""
    text = read(path)
    lines = text.split('\n')
    found = list(headings(text))
    for at, (number, level, title) in enumerate(found):
        if not ROUTE.search(title):
            continue
        end = next((n for n, other, _ in found[at + 1:] if other <= level), len(lines) + 1)
        place = f'{os.path.basename(path)}:{number}'
        yield Section(place, title, '\n'.join(lines[number:end - 1]))


def expand(operation):
    """{Get,Put}X: GetX and PutX."""
    braces = BRACES.fullmatch(operation)
    return {verb + braces[2] for verb in braces[1].split(',')} if braces else {operation}


def names(section):
    """What NAME stands for: the operations of each word, from the table below the heading."""
    found = {}
    for line in section.text.split('\n'):
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        words = re.findall(r'`([^`]+)`', cells[0])
        if line.startswith('| `') and words != ['NAME']:
            found.update((word, expand(cells[1])) for word in words)
    return found


def claims(section):
    """Every method, pattern and marker that a heading names, with its operations."""
    operations = set()
    for group in OPERATIONS.findall(section.title):
        operations.update(group.split(', '))
    for methods, pattern, query in ROUTE.findall(section.title):
        words = names(section) if 'NAME' in pattern + query else {'NAME': operations}
        for word, meant in words.items():
            for method in methods.split(', '):
                yield Claim(
                    section, method, pattern.replace('NAME', word),
                    query.replace('NAME', word) or None, meant,
                )


class ProtocolPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.routes = routes()
        cls.sections = {
            face: list(sections(os.path.join(PAGES, f'{face}.md')))
            for face in ('admin', 'steps', 'hub', 'xet', 's3')
        }
        cls.claims = [
            (face, claim)
            for face, found in cls.sections.items()
            for section in found
            for claim in claims(section)
        ]

    def test_every_route_has_a_heading(self):
        described = {
            (face, claim.method, claim.pattern, claim.query, operation)
            for face, claim in self.claims
            for operation in claim.operations
        }
        missing = [
            f'{method} {route.pattern}{"?" + route.query if route.query else ""} ({route.name})'
            for route in self.routes
            for method in route.methods
            if (face_of(route.pattern), method, route.pattern, route.query, route.name)
            not in described
        ]
        self.assertEqual(missing, [], 'no heading on the page of the face')

    def test_every_heading_names_routes_that_exist(self):
        there = {
            (face_of(route.pattern), method, route.pattern, route.query)
            for route in self.routes
            for method in route.methods
        }
        unknown = [
            f'{claim.section.place}: {claim.method} {claim.pattern}?{claim.query}'
            for face, claim in self.claims
            if (face, claim.method, claim.pattern, claim.query) not in there
        ]
        self.assertEqual(unknown, [])

    def test_every_heading_names_operations_of_its_routes(self):
        of_route = collections.defaultdict(set)
        for route in self.routes:
            for method in route.methods:
                of_route[method, route.pattern, route.query].add(route.name)
        for found in self.sections.values():
            for section in found:
                with self.subTest(section.place):
                    meant, has = set(), set()
                    for claim in claims(section):
                        meant |= claim.operations
                        has |= of_route[claim.method, claim.pattern, claim.query]
                    of_table = set().union(*names(section).values(), set())
                    self.assertLessEqual(meant - has, of_table)

    def test_every_section_has_the_frame(self):
        for found in self.sections.values():
            for section in found:
                with self.subTest(section.place):
                    starts = {line.split(' ')[0] for line in section.text.split('\n')}
                    self.assertEqual([part for part in FRAME if part not in starts], [])
                    self.assertRegex(commands(section.text), COMMAND, 'no line to try')

    def test_every_section_names_the_access_of_its_routes(self):
        said = collections.defaultdict(str)
        for _, claim in self.claims:
            text = claim.section.text.partition('Access:')[2].partition('\n\n')[0]
            for operation in claim.operations:
                said[claim.method, claim.pattern, claim.query, operation] += text
        lacking = [
            f'{route.name}: {route.access}'
            for route in self.routes
            for method in route.methods
            if f'`{route.access}`' not in said[method, route.pattern, route.query, route.name]
        ]
        self.assertEqual(lacking, [])

    def test_cited_sections_exist(self):
        titles = {
            os.path.basename(path)[:-3]: {title for _, _, title in headings(read(path))}
            for path in glob.glob(os.path.join(PAGES, '*.md'))
        }
        cited = 0
        for path in self.texts():
            text = LINE_START.sub(' ', read(path))
            for page, quoted in CITATION.findall(text):
                for title in re.findall(r'"([^"]+)"', quoted):
                    cited += 1
                    known = any(
                        title == other or title in re.findall(r'\w+', ''.join(re.findall(
                            r'\(.*\)', other)))
                        for other in titles.get(page, ())
                    )
                    self.assertTrue(known, f'{path}: {page}.md has no section "{title}"')
        self.assertGreater(cited, 20)

    def texts(self):
        """Sources and documents, wherever the tree comes from."""
        for folder, below, files in os.walk(SOURCE):
            below[:] = [name for name in below if not name.startswith('.') and name != 'build']
            for name in files:
                if name.endswith(('.md', '.c', '.h', '.py')):
                    yield os.path.join(folder, name)


if __name__ == '__main__':
    unittest.main()
