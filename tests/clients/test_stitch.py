"""stitch's way through a bucket, played by boto3: version folders in slime's layout under updates/, each file with its SHA-256 beside it and looked at again
before the pointer `latest` moves, the pointer moved by conditional writes alone; a replica that reads the pointer, fetches what it lacks and applies it.
"""
import hashlib
import os
import shutil
import unittest

from tests.support.clients import ClientCase, importable, read

if not importable('boto3') or not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed boto3, numpy, safetensors, zstandard, xxhash and blake3')

import boto3  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

from tests.formats import container, series, slime  # noqa: E402

BUCKET = 'stitch'
RUN = 'run-7f3a'


class Stitch(ClientCase):
    agent = r'Boto3/'

    @classmethod
    def prepare(cls):
        os.environ['AWS_EC2_METADATA_DISABLED'] = 'true'
        cls.s3 = boto3.client('s3', endpoint_url=cls.endpoint, aws_access_key_id=cls.keys[0], aws_secret_access_key=cls.keys[1],
                              region_name='us-east-1', verify=cls.daemon.ca)
        cls.s3.create_bucket(Bucket=BUCKET)
        checkpoints = cls.path('checkpoints')
        os.makedirs(checkpoints)
        cls.steps = list(series.walk(checkpoints, steps=4))

    def setUp(self):
        super().setUp()
        self.root = self._testMethodName

    def key(self, *names):
        return '/'.join((self.root, *names))

    def pointer(self):
        """(identity, ETag), or None before the first version."""
        try:
            reply = self.s3.get_object(Bucket=BUCKET, Key=self.key('latest'))
        except self.s3.exceptions.NoSuchKey:
            return None
        return reply['Body'].read().decode(), reply['ETag']

    def move_pointer(self, held, version):
        condition = {'IfMatch': held[1]} if held else {'IfNoneMatch': '*'}
        self.s3.put_object(Bucket=BUCKET, Key=self.key('latest'), Body=f'{RUN}/{slime.version_name(version)}'.encode(), **condition)

    def upload(self, folder):
        name = os.path.basename(folder)
        receipts = {}
        for file in sorted(os.listdir(folder)):
            data = read(os.path.join(folder, file))
            receipts[file] = len(data), hashlib.sha256(data).hexdigest()
            self.s3.upload_file(os.path.join(folder, file), BUCKET, self.key('updates', name, file),
                                ExtraArgs={'Metadata': {'stitch-sha256': receipts[file][1]}})
        for file, receipt in receipts.items():
            head = self.s3.head_object(Bucket=BUCKET, Key=self.key('updates', name, file))
            self.assertEqual((head['ContentLength'], head['Metadata']['stitch-sha256']), receipt)

    def write(self, version, form='slime-xor', checksum='xxh3-128'):
        folder = self.path(self.root, slime.version_name(version))
        slime.write_delta(folder, form, self.steps[version - 1][2], self.steps[version][2], version, checksum, ranks=2)
        return folder

    def publish(self, version, **how):
        held = self.pointer()
        self.upload(self.write(version, **how))
        self.move_pointer(held, version)

    def pull(self, receiver):
        """A replica: mirrors what it lacks, then applies up to the pointer."""
        target = int(self.pointer()[0].removeprefix(f'{RUN}/weight_v'))
        mirror = self.path(self.root + '-mirror')
        prefix = self.key('updates') + '/'
        for page in self.s3.get_paginator('list_objects_v2').paginate(Bucket=BUCKET, Prefix=prefix, PaginationConfig={'PageSize': 2}):
            for entry in page.get('Contents', ()):
                path = os.path.join(mirror, entry['Key'][len(prefix):])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if not os.path.exists(path):
                    self.s3.download_file(BUCKET, entry['Key'], path)
        return receiver.pull(mirror, target)

    def test_versions_reach_a_replica(self):
        replica = slime.Receiver(self.steps[0][2])
        self.publish(1)
        self.assertTrue(container.same(self.pull(replica), self.steps[1][2]))
        self.publish(2, checksum='adler32')
        self.publish(3, form='slime-overwrite', checksum='blake3')
        self.assertTrue(container.same(self.pull(replica), self.steps[3][2]))
        self.assertEqual(replica.version, 3)
        self.assertEqual(self.pointer()[0], f'{RUN}/weight_v000003')

    def test_a_full_version_serves_a_replica_that_has_nothing(self):
        self.publish(1)
        full = self.path(self.root, slime.version_name(2))
        container.write_sharded(full, self.steps[2][2], 2, files={'config.json': '{}'})
        held = self.pointer()
        self.upload(full)
        self.move_pointer(held, 2)
        self.publish(3)
        self.assertTrue(container.same(self.pull(slime.Receiver()), self.steps[3][2]))

    def test_two_publishers_and_one_pointer(self):
        """Who saw an older pointer does not move it, and who creates it twice neither."""
        self.publish(1)
        stale = self.pointer()
        self.publish(2)
        for held in (stale, None):
            with self.assertRaises(ClientError) as failure:
                self.move_pointer(held, 3)
            self.assertIn(failure.exception.response['Error']['Code'], ('PreconditionFailed', 'ConditionalRequestConflict'))
        self.assertEqual(self.pointer()[0], f'{RUN}/weight_v000002')

    @unittest.skipUnless(series.knows('transcode'), 'this program does not write slime deltas')
    def test_a_version_of_ours_between_theirs(self):
        self.publish(1)
        folder = self.path(self.root, slime.version_name(2))
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        series.run('diff', '--format', 'slime-xor', '--step', 2, self.steps[1][1], self.steps[2][1], folder)
        held = self.pointer()
        self.upload(folder)
        self.move_pointer(held, 2)
        self.publish(3)
        self.assertTrue(container.same(self.pull(slime.Receiver(self.steps[0][2])), self.steps[3][2]))
        shutil.rmtree(folder)
