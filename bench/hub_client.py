"""What bench/hub_rate.py has a real huggingface_hub do: runs in the environment where that is installed. Prints seconds as JSON."""
import json
import os
import sys
import time

from huggingface_hub import HfApi


def upload(api, bucket, path, name):
    api.batch_bucket_files(bucket, add=[(path, name)])


def download(api, bucket, name, path):
    api.download_bucket_files(bucket, files=[(name, path)])


def sync_up(api, bucket, folder, prefix):
    api.sync_bucket(folder, f'hf://buckets/{bucket}/{prefix}', quiet=True)


def listing(api, bucket, prefix):
    assert sum(1 for _ in api.list_bucket_tree(bucket, prefix=prefix, recursive=True)) > 0


def main():
    api = HfApi(endpoint=os.environ['HF_ENDPOINT'], token=os.environ['HF_TOKEN'])
    command, *words = sys.argv[1:]
    begun = time.monotonic()
    {'upload': upload, 'download': download, 'sync': sync_up, 'list': listing}[command](api, *words)
    print(json.dumps({'seconds': time.monotonic() - begun}))


main()
