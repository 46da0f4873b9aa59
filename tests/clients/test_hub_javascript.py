"""@huggingface/hub for JavaScript with its default configuration: hub.mjs. Its token begins with hf_, as it demands; the server takes that off."""
import os
import unittest

from tests.clients.test_javascript import MISSING, NODE, NodeCase
from tests.support.clients import NODE_MODULES, both_schemes

READY = NODE and os.path.isdir(os.path.join(NODE_MODULES, '@huggingface', 'hub'))


@unittest.skipUnless(READY, MISSING)
@both_schemes
class HuggingfaceJs(NodeCase):
    agent = '^node|^undici'
    script = 'hub.mjs'

    @classmethod
    def prepare(cls):
        super().prepare()
        key = cls.daemon.add_key('--name', 'javascript')
        cls.keys, cls.token = (key['key_id'], key['secret']), key['token']

    @classmethod
    def environment(cls, **more):
        return super().environment(HF_TOKEN=f'hf_{cls.token}', **more)

    def paths(self, pattern, method):
        self.settle()
        return [call['path'] for call in self.calls(self.seen) if pattern in call['path'] and call['method'] == method]

    def test_buckets(self):
        self.node('buckets')

    def test_files(self):
        self.node('files')
        self.assertTrue(self.paths('/xorbs/', 'POST'))
        self.assertTrue(self.paths('/v2/reconstructions/', 'GET'))

    def test_ranges(self):
        self.node('ranges')

    def test_edits(self):
        self.node('edits')

    def test_commits(self):
        self.node('commits')

    def test_access(self):
        self.node('access')


if __name__ == '__main__':
    unittest.main()
