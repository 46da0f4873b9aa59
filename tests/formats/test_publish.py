"""Runs whose deltas travel in each of the formats: a follower ends with the same bytes, and the objects of a step are what the independent readers take."""
import json
import os
import unittest

from tests.support.checkpoints import sha256
from tests.support.clients import importable
from tests.support.daemon import Daemon

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3')

from tests.formats import container, series, slime, trl, ulp_class  # noqa: E402

FORMATS = ('ulp-class', *slime.ENCODINGS, *trl.FORMATS)
STEPS = 3


class Publish(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.folder = os.path.join(cls.daemon.scratch, 'work')
        os.makedirs(cls.folder)
        cls.steps = list(series.walk(cls.folder, steps=STEPS - 1))
        cls.daemon.request('PUT', '/formats')

    def fetch(self, form, step):
        """The files of a step's delta, below a folder as the step names them."""
        base = f'/v1/runs/formats/{form}/steps/{step}'
        delta = next(entry for entry in self.daemon.request('GET', base).json()['forms'] if entry['kind'] == 'delta')
        folder = os.path.join(self.folder, f'{form}-{step}')
        for entry in delta['objects']:
            path = os.path.join(folder, entry['name'])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb') as file:
                file.write(self.daemon.request('GET', f"{base}/objects/delta/{entry['name']}").body)
        self.assertEqual(delta['format'], form)
        return folder

    def read(self, form, folder, tensors, step):
        if form in slime.ENCODINGS:
            return slime.apply(folder, tensors, step)[1]
        return (trl if form in trl.FORMATS else ulp_class).apply(folder, tensors)[1]

    def test_every_format(self):
        for form in FORMATS:
            with self.subTest(form=form):
                for number, path, _, _ in self.steps:
                    self.daemon.client('publish', '--run', f'formats/{form}', '--format', form, '--step', number, '--anchor', 'never', path)
                into = os.path.join(self.folder, f'{form}-worker')
                event = self.daemon.client('follow', '--run', f'formats/{form}', '--into', into, '--once', '--json').stdout
                self.assertEqual(json.loads(event.splitlines()[-1])['step'], STEPS - 1)
                self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), self.steps[-1][3])
                for number in range(1, STEPS):
                    result = self.read(form, self.fetch(form, number), self.steps[number - 1][2], number)
                    self.assertTrue(container.same(result, self.steps[number][2]))
