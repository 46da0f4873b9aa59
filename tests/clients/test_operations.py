"""Every operation that S3's own description (botocore's model) has, as a raw request: what this
server does not know is refused, and never taken for a request that lists, makes or deletes a
bucket, or reads, writes or deletes an object."""
import gzip
import json
import os
import unittest

from tests.support.clients import importable
from tests.support.daemon import Daemon

READY = importable('botocore')
MISSING = 'botocore is not installed (setup/clients)'
CONTENT = b'what is stored'
# The plain ones: these may do what the others may not.
PLAIN = {
    'ListBuckets', 'ListObjects', 'ListObjectsV2', 'HeadBucket', 'CreateBucket', 'DeleteBucket',
    'GetObject', 'HeadObject', 'PutObject', 'CopyObject', 'DeleteObject',
}
PLACES = {'/{Bucket}': '/{bucket}', '/{Bucket}/{Key+}': '/{bucket}/k'}
VALUES = {'partNumber': '1', 'versionId': 'null', 'encoding-type': 'url', 'uploadId': 'none'}
NUMBERS = ('max-', 'part-number-marker')


def model():
    import botocore
    folder = os.path.join(os.path.dirname(botocore.__file__), 'data', 's3', '2006-03-01')
    path = os.path.join(folder, 'service-2.json.gz')
    with gzip.open(path) as file:
        return json.load(file)


def parameters(model, operation):
    """(name, must be there) of each that stands in the query."""
    shape = model['shapes'].get(operation.get('input', {}).get('shape'), {})
    for member, about in shape.get('members', {}).items():
        if about.get('location') == 'querystring':
            yield about['locationName'], member in shape.get('required', ())


def example(name):
    return VALUES.get(name, '1' if name.startswith(NUMBERS) else 'x')


def requests(model):
    """(operation, method, path, query): without what may be left out, and with each of it."""
    for name, operation in sorted(model['operations'].items()):
        path, _, marker = operation['http']['requestUri'].partition('?')
        needed, others = [], ['']
        for key, is_needed in parameters(model, operation):
            (needed if is_needed else others).append(f'{key}={example(key)}')
        for other in others:
            query = '&'.join(filter(None, [marker, *needed, other]))
            yield name, operation['http']['method'], PLACES.get(path, path), query


@unittest.skipUnless(READY, MISSING)
class Operations(unittest.TestCase):
    def test_none_is_taken_for_another(self):
        with Daemon(tls=False) as self.daemon:
            for name, method, path, query in requests(model()):
                if name not in PLAIN and query:
                    with self.subTest(operation=name, query=query):
                        self.hold(method, path, query)

    def test_plain_ones_take_what_they_have(self):
        with Daemon(tls=False) as self.daemon:
            for name, method, path, query in requests(model()):
                if name in PLAIN:
                    with self.subTest(operation=name, query=query):
                        self.prepare()
                        target = f'{path.format(bucket="bucket")}?{query}'
                        reply = self.ask(method, target, b'')
                        self.assertNotEqual(reply.status, 501, reply.body)

    def ask(self, method, target, body):
        return self.daemon.request(method, target, body if method in ('PUT', 'POST') else None)

    def prepare(self):
        for target in ('/bucket', '/bucket/k', '/empty'):
            body = CONTENT if target.endswith('k') else b''
            self.assertEqual(self.ask('PUT', target, body).status, 200)

    def hold(self, method, path, query):
        """Asked of a bucket with an object, of an empty one and of one that is not there, it
        changes none of them."""
        for bucket in ('bucket', 'empty', 'absent'):
            self.prepare()
            target = f'{path.format(bucket=bucket)}?{query}'
            body = b'' if path == '/{bucket}' else b'other'  # making a bucket takes an empty one
            reply = self.ask(method, target, body)
            self.assertNotEqual(reply.body, CONTENT, target)
            for element in (b'<ListBucketResult', b'<ListAllMyBucketsResult'):
                self.assertNotIn(element, reply.body, target)
            self.assertEqual(self.ask('GET', '/bucket/k', None).body, CONTENT, target)
            self.assertEqual(self.ask('HEAD', '/empty', None).status, 200, target)
            self.assertEqual(self.ask('HEAD', '/absent', None).status, 404, target)
            self.assertNotIn(b'<Key>', self.ask('GET', '/empty', None).body, target)


if __name__ == '__main__':
    unittest.main()
