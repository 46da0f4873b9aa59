/* Four pieces of 1 KiB, spread over the content, are looked at in two ways.
 *
 * - Counts of byte values, apart for each position modulo 4. Random bytes collide (two draws equal)
 *   once in 256; skewed ones, be it in one plane of 2- or 4-byte elements only, do so more often.
 *   It costs a multiplication per value, so random content is told from the rest before a logarithm
 *   is taken. For the rest the entropy of each plane is what its codec can reach.
 * - zstd, for matches, which counts do not see. Where the counts look random, a level that seeks
 *   matches only, and skips fast. */
#include "chunker/codec_trial.h"

#include <math.h>
#include <string.h>

enum {
	PIECES = 4,
	PIECE_BYTES = 1024,
	SAMPLE_BYTES = PIECES * PIECE_BYTES,
	RESIDUES = 4,
	VALUES = 256,
	CONTENT_MIN_BYTES = 64, /* less gains nothing worth a codec */
	FRAME_BYTES = 16,       /* what a plane costs beside its payload */
	ZSTD_LEVEL = 1,
	ZSTD_LEVEL_MATCHES = -7
};

/* A codec is worth its decoding, and planes the loss of matches across them, when the result is
 * below this many parts of 256. */
enum { WORTH = 248, WHOLE = 256 };

struct sample {
	size_t len;
	size_t zstd_size; /* len when zstd gains nothing */
	bool skewed;      /* values are not spread evenly */
	uint8_t bytes[SAMPLE_BYTES];
	uint16_t counts[RESIDUES][VALUES];
};

static bool sample_take(struct sample *sample, struct compressor *compressor, struct span content);
static void sample_gather(struct sample *sample, struct span content);
static void sample_count(struct sample *sample);
static bool sample_is_skewed(const struct sample *sample);
static bool residue_is_skewed(const struct sample *sample, size_t residue);
static bool is_worth(size_t size, size_t than);
static size_t planes_size(const struct sample *sample, size_t width);
static double plane_size(const struct sample *sample, size_t width, size_t plane);

bool codec_trial_compressible(struct compressor *compressor, struct span content)
{
	struct sample sample;
	return sample_take(&sample, compressor, content);
}

enum codec codec_trial_best(struct compressor *compressor, struct span content)
{
	struct sample sample;
	if (!sample_take(&sample, compressor, content))
		return CODEC_RAW;
	if (!sample.skewed ||
		sample.len <
			SAMPLE_BYTES) /* too few values per plane tell nothing of its entropy */
		return is_worth(sample.zstd_size, sample.len) ? CODEC_ZSTD : CODEC_RAW;
	const size_t planes2 = planes_size(&sample, 2);
	const size_t planes4 = planes_size(&sample, 4);
	const bool four = is_worth(planes4, planes2);
	const size_t planes = four ? planes4 : planes2;
	const bool apart = is_worth(planes, sample.zstd_size);
	if (!is_worth(apart ? planes : sample.zstd_size, sample.len))
		return CODEC_RAW;
	if (!apart)
		return CODEC_ZSTD;
	return four ? CODEC_PLANES4 : CODEC_PLANES2;
}

/* True when a codec may be worth it. */
static bool sample_take(struct sample *sample, struct compressor *compressor, struct span content)
{
	uint8_t packed[SAMPLE_BYTES];
	if (content.len < CONTENT_MIN_BYTES)
		return false;
	sample_gather(sample, content);
	sample_count(sample);
	sample->skewed = sample_is_skewed(sample);
	const int level = sample->skewed ? ZSTD_LEVEL : ZSTD_LEVEL_MATCHES;
	const size_t size = compress_zstd(
		compressor, span_of(sample->bytes, sample->len), packed, sample->len - 1, level);
	sample->zstd_size = size != 0 ? size : sample->len;
	return sample->skewed || is_worth(sample->zstd_size, sample->len);
}

/* Pieces begin at multiples of 4, so that positions in the sample and in the content agree modulo
 * 4. */
static void sample_gather(struct sample *sample, struct span content)
{
	if (content.len <= SAMPLE_BYTES) {
		memcpy(sample->bytes, content.data, content.len);
		sample->len = content.len;
		return;
	}
	const size_t stride = (content.len - PIECE_BYTES) / (PIECES - 1) / RESIDUES * RESIDUES;
	for (size_t piece = 0; piece < PIECES; piece++)
		memcpy(sample->bytes + piece * PIECE_BYTES, content.data + piece * stride,
			PIECE_BYTES);
	sample->len = SAMPLE_BYTES;
}

static void sample_count(struct sample *sample)
{
	memset(sample->counts, 0, sizeof sample->counts);
	for (size_t i = 0; i < sample->len; i++)
		sample->counts[i % RESIDUES][sample->bytes[i]]++;
}

static bool sample_is_skewed(const struct sample *sample)
{
	for (size_t residue = 0; residue < RESIDUES; residue++) {
		if (residue_is_skewed(sample, residue))
			return true;
	}
	return false;
}

/* Whether the values at one position collide a quarter more often than random ones. */
static bool residue_is_skewed(const struct sample *sample, size_t residue)
{
	uint32_t total = 0;
	uint32_t squares = 0;
	for (size_t value = 0; value < VALUES; value++) {
		const uint32_t count = sample->counts[residue][value];
		total += count;
		squares += count * count;
	}
	const uint32_t random = total + total * total / VALUES;
	return squares > random + random / 4;
}

static bool is_worth(size_t size, size_t than)
{
	return size * WHOLE < than * WORTH;
}

static size_t planes_size(const struct sample *sample, size_t width)
{
	double size = 0;
	for (size_t plane = 0; plane < width; plane++)
		size += plane_size(sample, width, plane);
	return (size_t)size;
}

/* Bytes that an entropy coder needs for one plane of `width`-byte elements, its code table
 * included. The second term makes up for what a small sample hides: values that did not occur in
 * it. */
static double plane_size(const struct sample *sample, size_t width, size_t plane)
{
	double weighted = 0;
	uint32_t total = 0;
	uint32_t values = 0;
	for (size_t value = 0; value < VALUES; value++) {
		uint32_t count = 0;
		for (size_t residue = plane; residue < RESIDUES; residue += width)
			count += sample->counts[residue][value];
		if (count == 0)
			continue;
		weighted += count * (double)log2f((float)count);
		total += count;
		values++;
	}
	if (total == 0)
		return 0;
	const double bits = total * (double)log2f((float)total) - weighted + values * 0.72;
	return fmin(bits / 8 + FRAME_BYTES, total);
}
