"""A CUDA device as `deltabucket.gpu` uses it: the kernels compiled by NVRTC for the device that is
there, memory and stream of torch."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from deltabucket import errors
from deltabucket._library import text_of
from deltabucket._native import lib

KERNELS = ('device_read', 'device_apply', 'device_undo')


def compiled(architecture: str) -> bytes:
    """The kernels for an architecture like 'sm_90', as a cubin. Unsupported, with the compiler's
    words, when there is no NVRTC or it does not know the architecture."""
    nvrtc, _ = _bindings()
    source = text_of(lib.deltabucket_device_source()).encode()
    program = _checked(nvrtc.nvrtcCreateProgram(source, b'block_kernels.cu', 0, [], []))
    try:
        options = [f'--gpu-architecture={architecture}'.encode()]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b' ' * _checked(nvrtc.nvrtcGetProgramLogSize(program))
            nvrtc.nvrtcGetProgramLog(program, log)
            raise errors.Unsupported(f'NVRTC does not compile the kernels for {architecture}: '
                                     f'{status.name}: {log.decode(errors="replace").strip()}',
                                     kind='unsupported')
        cubin = bytes(_checked(nvrtc.nvrtcGetCUBINSize(program)))
        _checked(nvrtc.nvrtcGetCUBIN(program, cubin))
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


class Cuda:
    """One device, with the stream that is torch's current one of that device at each call. What
    other streams do with the tensors is not waited for."""

    def __init__(self, device: Any) -> None:
        """device: a torch.device of type cuda. Unsupported as of `compiled`."""
        _, driver = _bindings()
        import torch
        self._torch = torch
        self._driver = driver
        self._device = device
        self._sources: list[NDArray[numpy.uint8]] = []  # of copies that may still be going on
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # makes the context
            self._context = _checked(driver.cuCtxGetCurrent())
            self._kernels = _kernels_of(*torch.cuda.get_device_capability(device), device.index)

    def allocate(self, nbytes: int) -> Allocated:
        return Allocated(self._torch.empty(nbytes, dtype=self._torch.uint8, device=self._device))

    def host(self, nbytes: int) -> NDArray[numpy.uint8]:
        with self._torch.cuda.device(self._device):  # else the current one gets a context, too
            pinned: NDArray[numpy.uint8] = self._torch.empty(
                nbytes, dtype=self._torch.uint8, device='cpu', pin_memory=True).numpy()
        return pinned

    def upload(self, target: int, source: NDArray[numpy.uint8]) -> None:
        self._sources.append(source)
        with self._torch.cuda.device(self._device):
            _checked(self._driver.cuMemcpyHtoDAsync(target, source.ctypes.data, source.nbytes,
                                                    self._stream()))

    def download(self, source: Allocated, nbytes: int) -> NDArray[numpy.uint8]:
        found: NDArray[numpy.uint8] = source.tensor[:nbytes].cpu().numpy()
        self._sources.clear()
        return found

    def launch(self, kernel: str, grid: int, threads: int, arguments: Sequence[int],
               count: int | None = None) -> None:
        values = [*arguments]
        kinds: list[Any] = [ctypes.c_void_p] * len(values)
        if count is not None:
            values.insert(1, count)
            kinds.insert(1, ctypes.c_uint32)
        with self._torch.cuda.device(self._device):
            _checked(self._driver.cuLaunchKernel(
                self._kernels[kernel], grid, 1, 1, threads, 1, 1, 0, self._stream(),
                (tuple(values), tuple(kinds)), 0))

    def _stream(self) -> Any:
        # In a thread that has not used the device through torch, the driver has no context yet.
        _checked(self._driver.cuCtxSetCurrent(self._context))
        return self._driver.CUstream(self._torch.cuda.current_stream(self._device).cuda_stream)


@functools.cache
def _kernels_of(major: int, minor: int, device: int) -> dict[str, Any]:
    """{name: function} for the current device, which has this number; they stay loaded."""
    from cuda.bindings import driver
    module = _checked(driver.cuModuleLoadData(compiled(f'sm_{major}{minor}')))
    return {name: _checked(driver.cuModuleGetFunction(module, name.encode())) for name in KERNELS}


class Allocated:
    """Memory of a torch tensor."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.address: int = tensor.data_ptr()


def _bindings() -> tuple[Any, Any]:
    """nvrtc and driver of cuda.bindings. Unsupported where they, or NVRTC's library, are missing."""
    try:
        from cuda.bindings import driver, nvrtc
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as failure:
        raise errors.Unsupported('There is no compiler for the kernels: pip install '
                                 "'deltabucket[gpu]'.", kind='unsupported') from failure
    return nvrtc, driver


def _checked(result: Any) -> Any:
    """The value of a call of cuda.bindings; RuntimeError with the status where it failed."""
    status, *values = result
    if status.value != 0:
        raise RuntimeError(f'CUDA: {status.name}')
    return values[0] if values else None
