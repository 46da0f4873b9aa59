"""SGLang as it is started, on the CPU: `sglang.launch_server --device cpu`. Run by vLLM's Python with SGLang's environment in front,
python -m tests.support.sglang_process ARGUMENTS.

All of it is real: the server, its tokenizer manager, scheduler, weight updater and model runner; it also generates. Only sgl_kernel is not there, 1.2 GB
of kernels for GPUs: what is imported of it fails when it is called. With `--judge` instead of arguments, for each folder that is a line of the input it
prints what /weights_checker must tell of a Llama with these weights, as JSON: SGLang keeps the projections of attention and MLP stacked.

A test breaks it by a file, which SGLANG_FAULT names: while there is one that says "fail", the next load of weights removes it and ends in the middle;
"hold" is renamed to FILE.held, and the load waits until that is gone.
"""
import glob
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import time
import types


class Kernel:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return Kernel(f'{self.name}.{name}')

    def __call__(self, *_, **__):
        raise RuntimeError(f'{self.name} needs a GPU')


class Kernels(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        return getattr(Kernel(self.__name__), name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split('.')[0] == 'sgl_kernel' else None

    def create_module(self, spec):
        return Kernels(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())  # here, for SGLang's processes import this module too
STACKED = {'qkv_proj': ('q_proj', 'k_proj', 'v_proj'), 'gate_up_proj': ('gate_proj', 'up_proj')}


def break_by_file(path):
    from sglang.srt.models.llama import LlamaForCausalLM
    load = LlamaForCausalLM.load_weights

    def load_weights(self, weights):
        if not os.path.exists(path):
            return load(self, weights)
        with open(path) as file:
            fails = file.read() == 'fail'
        if fails:
            os.unlink(path)
            half = list(weights)
            load(self, half[:len(half) // 2])
            raise RuntimeError('the disk is gone')
        os.rename(path, f'{path}.held')
        while os.path.exists(f'{path}.held'):
            time.sleep(0.01)
        return load(self, weights)
    LlamaForCausalLM.load_weights = load_weights


if __name__ == '__mp_main__' and 'SGLANG_FAULT' in os.environ:
    break_by_file(os.environ['SGLANG_FAULT'])


def checksums(folder):
    import torch
    from safetensors.torch import load_file
    from sglang.srt.managers.mm_utils import tensor_hash
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, '*.safetensors'))):
        tensors.update(load_file(path))
    for name in list(tensors):
        for whole, parts in STACKED.items():
            if re.search(rf'\.{parts[0]}\.', name):
                tensors[name.replace(parts[0], whole)] = torch.cat([tensors.pop(name.replace(parts[0], part)) for part in parts])
    return {name: f'{tensor_hash(tensor):016x}' for name, tensor in tensors.items()}


def main():
    if sys.argv[1:] == ['--judge']:
        for line in sys.stdin:
            print(json.dumps(checksums(line.rstrip('\n'))), flush=True)
        return
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args
    run_server(prepare_server_args(sys.argv[1:]))


if __name__ == '__main__':
    main()
