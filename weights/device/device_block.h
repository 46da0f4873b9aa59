/* One block of an `ulp-class` delta as the kernels of block_kernels.cu take it: what its header
 * says, where its tensor lies in device memory, and where its payload lies in the upload. The host
 * fills it (device_plan.h) and the device reads it, so the layout is the same for both: numbers are
 * little-endian, without gaps. Also compiled by NVRTC, which has no C library. */
#ifndef WEIGHTS_DEVICE_DEVICE_BLOCK_H
#define WEIGHTS_DEVICE_DEVICE_BLOCK_H

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

enum {
	DEVICE_CLASSES = 12,
	DEVICE_THREADS = 128, /* of a thread block of device_apply */
	DEVICE_ALIGN = 16     /* bytes; payloads, and what they hold, begin at multiples */
};

/* How the words of a block become those of the result. Each kind is undone by doing it again, or
 * from the lists that device_apply leaves. */
enum device_kind {
	DEVICE_KEEP,  /* they stay, and are proven */
	DEVICE_SWAP,  /* payload: the result; afterwards it is the base */
	DEVICE_XOR,   /* payload: base XOR result */
	DEVICE_PAIRS, /* payload: `changes` rising positions of 4 bytes, then, at the next multiple
		       * of DEVICE_ALIGN, base XOR result of each of these words */
	DEVICE_STEPS  /* payload: the bits of "Classes and steps" in docs/FORMAT.md */
};

enum device_failure {
	DEVICE_FINE,
	DEVICE_MALFORMED, /* the payload breaks the layout; the words are as they were */
	DEVICE_MISMATCH   /* the result has another hash than the header says */
};

struct device_block {
	uint64_t words;       /* address of the first word, a multiple of `width` */
	uint64_t payload;     /* offset in the upload; DEVICE_ALIGN divides it */
	uint64_t result_hash; /* XXH3-64 of the result */
	uint32_t payload_bytes;
	uint32_t elements;   /* words of the block, 1 to 2^20 */
	uint32_t changes_at; /* place of the first change in the lists; steps only */
	uint32_t changes;    /* pairs and steps */
	uint32_t number;     /* among the blocks of all tensors (device_layout.h) */
	/* steps only, as in the block's header: */
	uint32_t counts[DEVICE_CLASSES];
	uint8_t parameters[DEVICE_CLASSES];
	uint8_t classes;
	uint8_t top;
	uint8_t shift; /* mantissa bits */
	uint8_t mask;  /* of the exponent, after the shift */
	/* all kinds: */
	uint8_t kind;
	uint8_t width; /* bytes of a word: 1, 2, 4 or 8; 1 or 2 for steps */
	uint8_t unused[2];
};

#endif
