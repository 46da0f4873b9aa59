"""The deltas that released versions have stored, through the kernels for GPUs, which run here
compiled for the host; and the bench of these kernels, on the host too. The golden deltas that are
files are in tests/unit/weights/device/test_device_golden.c."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.support.daemon import BUILD, SOURCE, Daemon
from tests.support.package import PYTHON, package_is_ready

assert package_is_ready(), 'setup/clients --only package brings what the package needs'

import deltabucket  # noqa: E402
from tests.support.device_delta import Delta, Device  # noqa: E402
from tests.support.device_machine import DeviceMachine  # noqa: E402

GOLDEN = os.path.join(SOURCE, 'tests', 'golden')
VERSIONS = sorted(name for name in os.listdir(GOLDEN)
                  if os.path.exists(os.path.join(GOLDEN, name, 'expected.json')))
BENCH_SECONDS = 300


class Stores(unittest.TestCase):
    def fetch(self, version):
        """A folder with N.safetensors, the weights of step N of the golden run, and N/, its delta
        where it has one; the numbers of both."""
        with open(os.path.join(GOLDEN, version, 'expected.json')) as file:
            expected = json.load(file)
        folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, folder)
        store = os.path.join(folder, 'store')
        shutil.copytree(os.path.join(GOLDEN, version, 'store'), store)
        os.chmod(store, 0o700)
        os.chmod(os.path.join(store, 'master.key'), 0o600)
        daemon = Daemon(tls=False, folder=store)
        for name in ('KEY_ID', 'SECRET', 'TOKEN'):
            del daemon.environment[f'DELTABUCKET_ROOT_{name}']  # the store's own root key
        run, steps, deltas = f'{expected["bucket"]}/followed', expected['runs']['followed'], []
        with daemon:
            for number, step in enumerate(steps):
                into = os.path.join(folder, f'worker-{number}')
                daemon.client('follow', '--run', run, '--into', into, '--once', '--step', number)
                shutil.copy(os.path.join(into, 'current', 'model.safetensors'),
                            os.path.join(folder, f'{number}.safetensors'))
                for target in step['objects']:
                    if '/objects/delta/' in target:
                        body = daemon.request('GET', f'/v1/runs/{run}/{target}').body
                        os.mkdir(os.path.join(folder, str(number)))
                        with open(os.path.join(folder, str(number), 'delta.safetensors'), 'wb') as file:
                            file.write(body)
                        deltas.append(number)
        return folder, deltas

    def test_every_delta(self):
        for version in VERSIONS:
            folder, deltas = self.fetch(version)
            self.assertGreaterEqual(len(deltas), 4)
            for number in deltas:
                with self.subTest(version=version, step=number):
                    self.judge(version, *(os.path.join(folder, name) for name in (
                        f'{number - 1}.safetensors', str(number), f'{number}.safetensors')))

    def judge(self, version, base, path, wanted):
        device = Device(DeviceMachine(), base)
        device.load()
        if version == 'v0_1_0':  # before there was ulp-class
            with self.assertRaises(deltabucket.Unsupported):
                Delta(device, path)
            return
        delta = Delta(device, path)
        delta.fill()
        delta.allocate()
        delta.send()
        delta.read()
        delta.apply()
        self.assertFalse(delta.failures().any())
        self.assertEqual(device.differs(wanted), [])
        self.assertNotEqual(device.differs(base), [])
        delta.undo()
        self.assertEqual(device.differs(base), [])


class Bench(unittest.TestCase):
    """bench/gpu_apply.py compares what it makes with the files, and ends badly where they differ."""

    def run_bench(self, *arguments, name='gpu_apply'):
        return subprocess.run([PYTHON, os.path.join(SOURCE, 'bench', f'{name}.py'), *arguments],
                              capture_output=True, text=True, timeout=BENCH_SECONDS,
                              env=dict(os.environ, DELTABUCKET_BUILD=BUILD, CUDA_VISIBLE_DEVICES=''))

    def test_its_own_code(self):
        done = self.run_bench('--machine', 'cpu', '--size', '3e6', '--rounds', '1', '--hostile', '4')
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ('series, ', 'evenly, 30.00 %', 'prepare', 'take back', 'damaged payloads'):
            self.assertIn(word, done.stdout)

    def test_without_a_gpu_it_says_what_is_missing(self):
        done = self.run_bench('--size', '3e6')
        self.assertEqual((done.returncode, done.stdout), (77, ''), done.stderr)
        self.assertRegex(done.stderr, 'is missing')

    def test_instructions_of_the_compiled_kernels(self):
        """All parts are found for all GPUs; and a step of 16 GB of which 1 % changed takes at most
        40 ms on an H100 where nothing overlaps, by bench/gpu_instructions.py's arithmetic."""
        done = self.run_bench('--sample', '3e6', name='gpu_instructions')
        self.assertEqual(done.returncode, 0, done.stderr)
        gpus = done.stdout.split('\nsm_')[1:]
        self.assertEqual([gpu.split(':')[0] for gpu in gpus], ['80', '90', '100'])
        for gpu in gpus:
            for stage in ('load_whole', 'count_bins', 'sum_segments', 'sum_bins', 'find_changes',
                          'make_changes', 'sum_parts', 'add_kibs'):
                row = re.search(rf'^ +{stage} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$', gpu, re.M)
                self.assertGreater(int(row[3]), 10, gpu)
        most = re.search(r'^ +1\.00 % changed.* \d+-(\d+) ms$', gpus[1], re.M)
        self.assertLessEqual(int(most[1]), 40, gpus[1])


if __name__ == '__main__':
    unittest.main()
