"""What lies in console/vendor is what the packages of npm have, byte for byte, in the versions that tests/clients/package.json pins."""
import os
import unittest

from tests.support.clients import NODE_MODULES, read
from tests.support.daemon import SOURCE

VENDOR = os.path.join(SOURCE, 'console', 'vendor')
# The file here, and the one of the package. htm's has Preact inside, whose licence lies beside.
ORIGINS = {
    'htm-preact.js': 'htm/preact/standalone.module.js', 'htm.LICENSE': 'htm/LICENSE', 'preact.LICENSE': 'preact/LICENSE',
    'uPlot.esm.js': 'uplot/dist/uPlot.esm.js', 'uPlot.min.css': 'uplot/dist/uPlot.min.css', 'uPlot.LICENSE': 'uplot/LICENSE',
}


class Vendor(unittest.TestCase):
    def test_each_file_is_the_package_s(self):
        self.assertEqual(sorted(os.listdir(VENDOR)), sorted(ORIGINS))
        for name, origin in ORIGINS.items():
            with self.subTest(name):
                self.assertEqual(read(os.path.join(VENDOR, name)), read(os.path.join(NODE_MODULES, origin)))
