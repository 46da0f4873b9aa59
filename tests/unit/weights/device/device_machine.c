/* The words of CUDA are macros and functions here. A thread of the device is a thread of the host,
 * and thread blocks run one after the other, so what they share can be static. With one thread
 * there is nothing to wait for. */
#include "tests/unit/weights/device/device_machine.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

struct machine_place {
	unsigned x;
};
static _Thread_local struct machine_place threadIdx, blockIdx, blockDim;
static pthread_barrier_t barrier;

/* Before and after it the same bytes may be words of other sizes. */
static void machine_meet(void)
{
	if (blockDim.x > 1)
		pthread_barrier_wait(&barrier);
	__asm__ volatile("" ::: "memory");
}

static void machine_lower(uint32_t *at, uint32_t value)
{
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
	while (value < old &&
		!__atomic_compare_exchange_n(
			at, &old, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static uint64_t machine_high(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	return (uint64_t)((wide)a * b >> 64);
}

#define KERNEL static
#define ALIAS  __attribute__((may_alias))
#define __device__
#define __shared__    static
#define __syncthreads machine_meet
#define __ffs         __builtin_ffs
#define __ffsll       __builtin_ffsll
#define __popcll      (unsigned)__builtin_popcountll
#define IS_GLOBAL(address)
#define ROLLED
#define __umul64hi machine_high
#define atomicMin  machine_lower
#include "weights/device/block_kernels.cu"

typedef void machine_kernel_fn(const struct device_work *work);

static void run_read(const struct device_work *work)
{
	device_read(
		work->blocks, work->count, work->upload, work->places, work->steps, work->failures);
}

static void run_apply(const struct device_work *work)
{
	device_apply(work->blocks, work->upload, work->places, work->steps, work->failures,
		work->hashes);
}

static void run_undo(const struct device_work *work)
{
	device_undo(work->blocks, work->upload, work->places, work->steps);
}

/* A kernel and the numbers of one of its threads. */
struct launch {
	machine_kernel_fn *kernel;
	const struct device_work *work;
	unsigned grid;
	unsigned threads;
	unsigned thread;
};

static void *run_thread(void *state)
{
	const struct launch *const launch = state;
	threadIdx.x = launch->thread;
	blockDim.x = launch->threads;
	for (blockIdx.x = 0; blockIdx.x < launch->grid; blockIdx.x++) {
		launch->kernel(launch->work);
		machine_meet();
	}
	return NULL;
}

static void launch(
	machine_kernel_fn *kernel, const struct device_work *work, unsigned grid, unsigned threads)
{
	struct launch launches[DEVICE_THREADS];
	pthread_t handles[DEVICE_THREADS];
	ASSERT(threads > 0 && threads <= DEVICE_THREADS);
	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		launches[i] = (struct launch){kernel, work, grid, threads, i};
		if (i > 0)
			ASSERT(pthread_create(&handles[i], NULL, run_thread, &launches[i]) == 0);
	}
	run_thread(&launches[0]);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(handles[i], NULL);
	pthread_barrier_destroy(&barrier);
}

void device_machine_read(const struct device_work *work, unsigned threads)
{
	launch(run_read, work, (work->count + threads - 1) / threads, threads);
}

void device_machine_apply(const struct device_work *work, unsigned threads)
{
	launch(run_apply, work, work->count, threads);
}

void device_machine_change(const struct device_work *work, unsigned threads)
{
	device_machine_read(work, threads);
	device_machine_apply(work, threads);
}

void device_machine_undo(const struct device_work *work, unsigned threads)
{
	launch(run_undo, work, work->count, threads);
}
