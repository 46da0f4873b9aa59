"""Runs tests/support/s3_tool.c: the S3 client of base/net/s3, one request at a time."""
import os
import subprocess

from tests.support.daemon import BUILD, REPLY_SECONDS, environment_of_programs


class Refused(Exception):
    """What the client says: its kind, and a sentence."""

    def __init__(self, told):
        super().__init__(told)
        self.kind, _, self.text = told.partition(': ')


class S3Tool:
    """`prefix` stands before all names."""

    def __init__(self, endpoint, bucket, key_id, secret, prefix='', ca=None):
        self.front = [os.path.join(BUILD, 's3_tool'), endpoint, bucket, prefix]
        self.environment = dict(environment_of_programs(), S3_KEY_ID=key_id, S3_SECRET=secret, **({'S3_CA': ca} if ca else {}))

    def run(self, *words, body=b'', page=None):
        environment = dict(self.environment, **({'S3_PAGE': str(page)} if page else {}))
        done = subprocess.run([*self.front, *map(str, words)], input=body, env=environment, capture_output=True, timeout=REPLY_SECONDS)
        if done.returncode != 0:
            raise Refused(done.stderr.decode(errors='replace').strip())
        return done.stdout

    def rows(self, *words, page=None):
        return [line.split('\t') for line in self.run(*words, page=page).decode().split('\n')[:-1]]

    def put(self, name, body):
        self.run('put', name, body=body)

    def get(self, name):
        return self.run('get', name)

    def range(self, name, offset, length):
        """The bytes, and those of the whole object."""
        total, _, piece = self.run('range', name, offset, length).partition(b'\n')
        return piece, int(total)

    def head(self, name):
        return int(self.run('head', name))

    def remove(self, name):
        self.run('remove', name)

    def list(self, begin='', page=None):
        """name -> (bytes, ms)"""
        return {name: (int(size), int(changed)) for name, size, changed in self.rows('list', begin, page=page)}

    def uploads(self, begin='', page=None):
        return [(name, upload, int(initiated)) for name, upload, initiated in self.rows('uploads', begin, page=page)]

    def begin(self, name):
        return self.run('begin', name).decode().strip()

    def part(self, name, upload, number, body):
        return self.run('part', name, upload, number, body=body).decode().strip()

    def complete(self, name, upload, size, etags):
        self.run('complete', name, upload, size, *etags)

    def abort(self, name, upload):
        self.run('abort', name, upload)

    def many(self, threads, count, body):
        self.run('many', threads, count, body=body)
