"""libdeltabucket.so of the build, by ctypes: its structs, and calls that raise Failed."""
import ctypes
import os

from tests.support.daemon import BUILD, ROOT_TOKEN

PATH = os.path.join(BUILD, 'libdeltabucket.so')
PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)
NOTE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Error(ctypes.Structure):
    _fields_ = [('number', ctypes.c_int), ('os_errno', ctypes.c_int), ('kind', ctypes.c_char * 64),
                ('request_id', ctypes.c_char * 64), ('text', ctypes.c_char * 512)]


class Sized(ctypes.Structure):
    def __init__(self, **members):
        super().__init__(size=ctypes.sizeof(self), **members)


class WatchSettings(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('progress', PROGRESS), ('note', NOTE), ('owner', ctypes.c_void_p), ('warn', NOTE)]


class ClientSettings(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('endpoint', ctypes.c_char_p), ('token', ctypes.c_char_p), ('ca', ctypes.c_char_p),
                ('profile', ctypes.c_char_p), ('retries', ctypes.c_int), ('parallel', ctypes.c_uint), ('threads', ctypes.c_uint), ('reserved', ctypes.c_uint)]


class Object(ctypes.Structure):
    _fields_ = [('size', ctypes.c_size_t), ('key', ctypes.c_char_p), ('bytes', ctypes.c_uint64),
                ('modified_ms', ctypes.c_int64), ('etag', ctypes.c_char_p)]


class Tensor(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('dtype', ctypes.c_char_p), ('shape', ctypes.POINTER(ctypes.c_uint64)), ('rank', ctypes.c_size_t),
                ('data', ctypes.c_void_p), ('bytes', ctypes.c_uint64)]


class PatchSettings(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('proves_first', ctypes.c_int), ('threads', ctypes.c_uint)]


TOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64)


class SyncSettings(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('bucket', ctypes.c_char_p), ('prefix', ctypes.c_char_p), ('folder', ctypes.c_char_p),
                ('direction', ctypes.c_char_p), ('deletes', ctypes.c_int), ('dry_run', ctypes.c_int), ('create_bucket', ctypes.c_int),
                ('told', TOLD), ('owner', ctypes.c_void_p)]


class Synced(Sized):
    _fields_ = [('size', ctypes.c_size_t), ('files', ctypes.c_uint64), ('moved', ctypes.c_uint64), ('moved_bytes', ctypes.c_uint64),
                ('traffic_bytes', ctypes.c_uint64), ('removed', ctypes.c_uint64), ('refused', ctypes.c_uint64)]


FOUND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Object))
ANSWER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


class Failed(Exception):
    def __init__(self, error):
        super().__init__(f'{error.kind.decode()}: {error.text.decode()}')
        self.number, self.os_errno = error.number, error.os_errno
        self.kind, self.request_id, self.text = error.kind.decode(), error.request_id.decode(), error.text.decode()


class Library:
    """Calls by name, without `deltabucket_`: `call` for those that return a number, `made` for those
    that return a pointer. Texts are encoded; the error is added."""

    def __init__(self):
        self.names = ctypes.CDLL(PATH)

    def call(self, name, *arguments):
        error = Error()
        function = getattr(self.names, f'deltabucket_{name}')
        function.restype = ctypes.c_int
        result = function(*map(encoded, arguments), ctypes.byref(error))
        if result < 0:
            raise Failed(error)
        return result

    def made(self, name, *arguments):
        error = Error()
        function = getattr(self.names, f'deltabucket_{name}')
        function.restype = ctypes.c_void_p
        pointer = function(*map(encoded, arguments), ctypes.byref(error))
        if not pointer:
            raise Failed(error)
        return ctypes.c_void_p(pointer)

    def watch(self, settings=None):
        function = self.names.deltabucket_watch_new
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(settings and ctypes.byref(settings)))


class Tensors:
    """Those of a safetensors file, in memory and in any order, as an array of Tensor."""

    def __init__(self, tensors):
        """tensors: {name: (dtype, shape, bytes)}"""
        self.memory = {name: ctypes.create_string_buffer(data, len(data)) for name, (_, _, data) in tensors.items()}
        self.array = (Tensor * len(tensors))(*(
            Tensor(name.encode(), dtype.encode(), (ctypes.c_uint64 * len(shape))(*shape), len(shape), ctypes.addressof(self.memory[name]), len(data))
            for name, (dtype, shape, data) in tensors.items()))

    def bytes(self):
        return {name: memory.raw for name, memory in self.memory.items()}


def texts(values):
    return (ctypes.c_char_p * len(values))(*map(str.encode, values))


def encoded(value):
    if isinstance(value, str):
        return value.encode()
    return ctypes.c_int64(value) if isinstance(value, int) else value


class Client:
    """A client of a test's server, as a context manager."""

    def __init__(self, library, **settings):
        self.library = library
        self.settings = ClientSettings(**{name: encoded(value) if isinstance(value, str) else value for name, value in settings.items()})

    def __enter__(self):
        self.pointer = self.library.made('client_new', ctypes.byref(self.settings))
        return self

    def __exit__(self, *failure):
        self.library.names.deltabucket_client_free(self.pointer)

    def call(self, name, *arguments, watch=None):
        return self.library.call(name, self.pointer, *arguments, watch)

    def get(self, bucket, key, start, size):
        """The bytes, and the size of the object."""
        into, came, whole = ctypes.create_string_buffer(max(size, 1)), ctypes.c_size_t(), ctypes.c_uint64()
        self.call('get', bucket, key, start, into, size, ctypes.byref(came), ctypes.byref(whole))
        return into.raw[:came.value], whole.value

    def found(self, name, *arguments, most=None):
        """What `found` of head and list is told: (key, bytes, modified_ms, etag), at most `most`."""
        objects = []

        def found(owner, pointer):
            object = pointer.contents
            objects.append((object.key.decode(), object.bytes, object.modified_ms, object.etag.decode()))
            return most is not None and len(objects) >= most
        self.call(name, *arguments, FOUND(found), None)
        return objects

    def ask(self, target):
        answers = []

        def found(owner, pointer, size):
            answers.append(ctypes.string_at(pointer, size))
            return 0
        self.call('ask', target, ANSWER(found), None)
        (answer,) = answers
        return answer


def of_daemon(library, daemon, token=ROOT_TOKEN, **settings):
    ca = {'ca': daemon.ca} if daemon.tls else {}
    return Client(library, **{'endpoint': daemon.endpoint, 'token': token, **ca, **settings})
