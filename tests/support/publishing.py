"""The publisher of libdeltabucket.so by ctypes, and tensors in memory as its caller has them."""
import ctypes
import json
import struct

from tests.support.library import Sized, encoded


class Tensor(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('dtype', ctypes.c_char_p), ('shape', ctypes.POINTER(ctypes.c_uint64)),
                ('rank', ctypes.c_size_t), ('data', ctypes.c_void_p), ('bytes', ctypes.c_uint64)]


class File(ctypes.Structure):
    _fields_ = [('path', ctypes.c_char_p), ('bytes', ctypes.c_char_p), ('len', ctypes.c_uint64)]


class PublisherSettings(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('run', ctypes.c_char_p), ('state', ctypes.c_char_p), ('create_bucket', ctypes.c_int),
                ('take_over', ctypes.c_int), ('keep_steps', ctypes.c_int64)]


class Publication(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('path', ctypes.c_char_p), ('tensors', ctypes.POINTER(Tensor)),
                ('tensor_count', ctypes.c_size_t), ('files', ctypes.POINTER(File)), ('file_count', ctypes.c_size_t),
                ('step', ctypes.c_int64), ('label', ctypes.c_char_p), ('metadata', ctypes.POINTER(ctypes.c_char_p)),
                ('anchor', ctypes.c_char_p), ('format', ctypes.c_char_p), ('rank', ctypes.c_uint), ('ranks', ctypes.c_uint),
                ('epoch', ctypes.c_uint64), ('wait_s', ctypes.c_int64)]


class Published(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('step', ctypes.c_uint64), ('digest', ctypes.c_char * 42), ('already', ctypes.c_int),
                ('anchor_due', ctypes.c_int), ('checkpoint_bytes', ctypes.c_uint64), ('delta_bytes', ctypes.c_uint64),
                ('anchor_bytes', ctypes.c_uint64), ('elements', ctypes.c_uint64), ('changed_elements', ctypes.c_uint64),
                ('diff_ms', ctypes.c_int64), ('upload_ms', ctypes.c_int64)]


def read_tensors(path):
    """Name to (dtype, shape, bytes) of a safetensors file."""
    with open(path, 'rb') as file:
        content = file.read()
    (size,) = struct.unpack_from('<Q', content)
    header = json.loads(content[8:8 + size])
    header.pop('__metadata__', None)
    return {name: (told['dtype'], tuple(told['shape']), content[8 + size + told['data_offsets'][0]:8 + size + told['data_offsets'][1]])
            for name, told in header.items()}


class Publisher:
    """A publisher as a context manager. `publish` takes a path or {name: (dtype, shape, bytes)}."""

    def __init__(self, client, run, **settings):
        self.client, self.library = client, client.library
        self.settings = PublisherSettings(run=run.encode(), **{'keep_steps': -1, **{
            name: encoded(value) if isinstance(value, str) else value for name, value in settings.items()}})

    def __enter__(self):
        self.pointer = self.library.made('publisher_open', self.client.pointer, ctypes.byref(self.settings))
        return self

    def __exit__(self, *failure):
        self.library.names.deltabucket_publisher_close(self.pointer)

    def publish(self, what, files=None, watch=None, **more):
        members = {'step': -1, **{name: encoded(value) if isinstance(value, str) else value for name, value in more.items()}}
        if isinstance(what, str):
            members['path'] = what.encode()
        else:
            tensors, kept = tensors_of(what)
            members.update(tensors=tensors, tensor_count=len(tensors))
        if files:
            listed = (File * len(files))(*(File(path.encode(), content, len(content)) for path, content in files.items()))
            members.update(files=listed, file_count=len(files))
        published = Published()
        self.library.call('publish', self.pointer, ctypes.byref(Publication(**members)), ctypes.byref(published), watch)
        return published

    def epoch(self):
        out = ctypes.c_uint64()
        self.library.call('publisher_epoch', self.pointer, ctypes.byref(out), None)
        return out.value


def tensors_of(tensors):
    """The array, and what must live as long as it."""
    array, kept = (Tensor * len(tensors))(), []
    for tensor, (name, (dtype, shape, content)) in zip(array, tensors.items()):
        sizes, data = (ctypes.c_uint64 * len(shape))(*shape), ctypes.create_string_buffer(content, max(len(content), 1))
        kept += [sizes, data]
        tensor.name, tensor.dtype, tensor.shape, tensor.rank = name.encode(), dtype.encode(), sizes, len(shape)
        tensor.data, tensor.bytes = ctypes.cast(data, ctypes.c_void_p), len(content)
    return array, kept
