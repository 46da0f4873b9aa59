"""The two ends of TRL's weight sync over a bucket, with the real huggingface_hub. usage: trl_worker.py trainer|engine BUCKET SERIES ANCHOR_INTERVAL

The trainer steps through a series of real checkpoints: its first version and every ANCHOR_INTERVALth is an anchor with all weights, the others carry
what changed (weight-delta.md 2.2 to 2.4), written to a file and sent by batch_bucket_files. The engine is told the name of each and whether it is
sparse, gets it by download_bucket_files into a folder of its own and writes it over the weights it holds.
One JSON object per line: {"version": n} to the trainer gives {"filename", "update_kind", "sha256" of the full file}, to the engine sent on it gives
{"sha256"}.
"""
import glob
import json
import os
import sys
import tempfile

from huggingface_hub import batch_bucket_files, create_bucket, download_bucket_files

from tests.formats import container, trl
from tests.support.checkpoints import sha256


class Trainer:
    def __init__(self, bucket, series, interval):
        self.bucket, self.series, self.interval = bucket, series, interval
        self.deltas = sorted(glob.glob(os.path.join(series, 'deltas', '*.safetensors')))
        self.anchor, = glob.glob(os.path.join(series, 'anchors', '*.safetensors'))
        self.weights, _ = container.read(self.anchor)
        create_bucket(bucket, exist_ok=True)

    def optimizer_step(self, version):
        """Weights before and after; version 1 is the first checkpoint itself."""
        before = self.weights
        if version > 1:
            _, self.weights = trl.apply(self.deltas[version - 2], before)
        return before

    def answer(self, request):
        version = request['version']
        before = self.optimizer_step(version)
        is_anchor = version == 1 or version % self.interval == 0
        filename = f'{"anchors" if is_anchor else "deltas"}/step_{version:06d}.safetensors'
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'patch.safetensors')
            if is_anchor:
                trl.write_anchor(path, self.weights)
            else:
                trl.write_delta('trl-gap', path, before, self.weights, version)
            batch_bucket_files(self.bucket, add=[(path, filename)])
            container.rewrite(self.anchor, self.weights, path)
            return {'filename': filename, 'update_kind': 'dense' if is_anchor else 'sparse_flat', 'sha256': sha256(path)}


class Engine:
    def __init__(self, bucket, series, _):
        self.bucket = bucket
        self.template, = glob.glob(os.path.join(series, 'anchors', '*.safetensors'))
        self.weights = None

    def answer(self, request):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'patch.safetensors')
            download_bucket_files(self.bucket, files=[(request['filename'], path)], raise_on_missing_files=True)
            if request['update_kind'] == 'dense':
                self.weights, _ = container.read(path)
            else:
                _, self.weights = trl.apply(path, self.weights)
            container.rewrite(self.template, self.weights, path)
            return {'sha256': sha256(path)}


def main(role, bucket, series, interval):
    worker = {'trainer': Trainer, 'engine': Engine}[role](bucket, series, int(interval))
    replies = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    for line in sys.stdin:
        replies.write(json.dumps(worker.answer(json.loads(line))) + '\n')
        replies.flush()


if __name__ == '__main__':
    main(*sys.argv[1:])
