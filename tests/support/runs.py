"""A run of small checkpoints made up in memory, published by hand. Digests come from the server itself: what it says of an object's bytes."""
import hashlib
import json
import struct

FILE = 'model.safetensors'


def shard(tensors):
    """The bytes of a safetensors file. tensors: {name: bytes}, all of dtype U8."""
    header, offset = {}, 0
    for name in sorted(tensors):
        header[name] = {'dtype': 'U8', 'shape': [len(tensors[name])], 'data_offsets': [offset, offset + len(tensors[name])]}
        offset += len(tensors[name])
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + b''.join(tensors[name] for name in sorted(tensors))


def weights(step, names='abcd'):
    """Tensors of a step: a few bytes each, other ones in every step."""
    return {name: hashlib.sha256(f'{step}{name}'.encode()).digest()[:8] for name in names}


def read_step(test, daemon, run, step):
    """All of it is there: the manifest, and each object of each form."""
    got = daemon.request('GET', f'/v1/runs/{run}/steps/{step}')
    test.assertEqual(got.status, 200, (step, got.body))
    objects = [made for form in got.json()['forms'] for made in form['objects']]
    test.assertTrue(objects, got.body)
    for made in objects:
        got = daemon.request('GET', f'/v1/runs/{run}/{made["url"]}')
        test.assertEqual((got.status, len(got.body)), (200, made['size']), (step, made))


class Run:
    """Bucket and run are made when they are not there. Requests go to any process of the daemon: nothing is kept but digests."""

    def __init__(self, daemon, name, bucket='models'):
        self.daemon, self.name, self.bucket = daemon, name, bucket
        self.base = f'/v1/runs/{bucket}/{name}'
        self.digests = {}
        daemon.request('PUT', f'/{bucket}')
        self.epoch = self.open()

    def open(self, **body):
        reply = self.call('POST', '', body)
        assert reply.status == 200, reply.body
        self.epoch = reply.json()['epoch']
        return self.epoch

    def call(self, method, target, body=None, headers=None, timeout=120, **options):
        text = json.dumps(body) if isinstance(body, (dict, list)) else body
        return self.daemon.request(method, self.base + target, text, headers, timeout=timeout, **options)

    def put(self, key, data):
        reply = self.daemon.request('PUT', f'/{self.bucket}/{key}', data)
        assert reply.status == 200, reply.body
        return {'key': key, 'size': len(data), 'digest': reply.headers['x-deltabucket-digest']}

    def digest(self, data):
        if data not in self.digests:
            self.digests[data] = self.put(f'scratch/{hashlib.sha256(data).hexdigest()}', data)['digest']
        return self.digests[data]

    def tensor_digests(self, tensors):
        return {name: self.digest(data) for name, data in tensors.items()}

    def checkpoint_digest(self, tensors):
        text = b''
        for name in sorted(tensors):
            digest = bytes.fromhex(self.digest(tensors[name]).split(':')[1])
            text += name.encode() + b'\0U8\0' + str(len(tensors[name])).encode() + b'\0' + digest
        return self.digest(text)

    def base_of(self, step):
        return {} if step == 0 else {'base': {'step': step - 1, 'digest': self.checkpoint_digest(weights(step - 1))}}

    def anchor(self, step, **changes):
        data = shard(weights(step))
        stored = self.put(f'{self.name}/a{step}', data)
        body = {'step': step, 'epoch': self.epoch, 'digest': self.checkpoint_digest(weights(step)),
                'files': [{'path': FILE, 'size': stored['size'], 'digest': stored['digest']}],
                'forms': [{'kind': 'anchor', 'format': 'full', 'objects': [dict(stored, name=FILE)]}], **self.base_of(step)}
        body.update(changes)
        return body

    def publish(self, step, body=None):
        return self.call('PUT', f'/steps/{step}', body or self.anchor(step))

    def publish_all(self, first, last):
        for step in range(first, last + 1):
            reply = self.publish(step)
            assert reply.status == 201, reply.body
