"""The examples that README.md prints, made into programs over the small series of checkpoints."""
import os
import re

from tests.support.clients import read
from tests.support.daemon import SOURCE


def examples(path):
    """The indented Python blocks of a document, in order."""
    text = read(os.path.join(SOURCE, path)).decode()
    blocks = re.findall(r'(?:^    .*\n(?:\n(?=    ))?)+', text, re.M)
    cut = (re.sub('^    ', '', block, flags=re.M) for block in blocks)
    return [block for block in cut if re.search(r'\bdeltabucket\.(?:Run|Bucket)\(', block)]


def publisher(paths):
    """README.md's publisher, which publishes these safetensors files and ends."""
    lines = examples('README.md')[0]
    return f'''
import safetensors.numpy
class model:
    step = -1
    def state_dict():
        return safetensors.numpy.load_file({paths!r}[model.step])
def train_one_step(given):
    given.step += 1
    if given.step == {len(paths)}:
        raise SystemExit
{lines}'''


def follower(into):
    """README.md's follower, which prints the path of each step that it has; it does not end."""
    lines = examples('README.md')[1]
    assert '/srv/weights' in lines, lines
    return '''
class engine:
    def load(path):
        print(path, flush=True)
''' + lines.replace('/srv/weights', into)
