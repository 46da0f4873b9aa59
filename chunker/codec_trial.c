/* The trial judges four pieces of 1 KiB, spread over the content, in two ways.
 *
 * - It counts byte values, separately for each position modulo 4. Two random bytes are equal once
 *   in 256 draws; skewed bytes are equal more often, even if only one plane of 2- or 4-byte
 *   elements is skewed. This test costs a multiplication per value and no logarithm, so random
 *   content is recognised cheaply. For other content, the entropy of each plane is the size that
 *   its codec can reach.
 * - It compresses the pieces with zstd to find matches, which counts do not show. If the counts
 *   look random, it uses a level that only seeks matches and skips fast. */
#include "chunker/codec_trial.h"

#include <math.h>
#include <string.h>

enum {
	PIECES = 4,
	PIECE_BYTES = 1024,
	SAMPLE_BYTES = PIECES * PIECE_BYTES,
	RESIDUES = 4,
	VALUES = 256,
	CONTENT_MIN_BYTES = 64, /* no codec is worth it for less */
	FRAME_BYTES = 16,       /* the cost of a plane beside its payload */
	ZSTD_LEVEL = 1,
	ZSTD_LEVEL_MATCHES = -7
};

/* A result must be smaller than 248/256 of the alternative. Only then is a codec worth the time to
 * decode it, and are planes worth the loss of matches across them. */
enum { WORTH = 248, WHOLE = 256 };

struct sample {
	size_t len;
	size_t zstd_size; /* len when zstd gains nothing */
	bool is_skewed;   /* values are not spread evenly */
	uint8_t bytes[SAMPLE_BYTES];
	uint16_t counts[RESIDUES][VALUES];
};

static bool sample_take(struct sample *sample, struct compressor *compressor, struct span content);
static void sample_gather(struct sample *sample, struct span content);
static void sample_count(struct sample *sample);
static bool sample_is_skewed(const struct sample *sample);
static bool residue_is_skewed(const struct sample *sample, size_t residue);
static bool is_worth(size_t size, size_t alternative);
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
	/* a short sample has too few values per plane to show the plane's entropy */
	if (!sample.is_skewed || sample.len < SAMPLE_BYTES)
		return is_worth(sample.zstd_size, sample.len) ? CODEC_ZSTD : CODEC_RAW;
	const size_t planes2 = planes_size(&sample, 2);
	const size_t planes4 = planes_size(&sample, 4);
	const bool four_win = is_worth(planes4, planes2);
	const size_t planes = four_win ? planes4 : planes2;
	const bool planes_win = is_worth(planes, sample.zstd_size);
	if (!is_worth(planes_win ? planes : sample.zstd_size, sample.len))
		return CODEC_RAW;
	if (!planes_win)
		return CODEC_ZSTD;
	return four_win ? CODEC_PLANES4 : CODEC_PLANES2;
}

/* Fills the sample. True when a codec may be worth it. */
static bool sample_take(struct sample *sample, struct compressor *compressor, struct span content)
{
	uint8_t packed[SAMPLE_BYTES];
	if (content.len < CONTENT_MIN_BYTES)
		return false;
	sample_gather(sample, content);
	ASSERT(sample->len >= CONTENT_MIN_BYTES && sample->len <= SAMPLE_BYTES);
	sample_count(sample);
	sample->is_skewed = sample_is_skewed(sample);
	const int level = sample->is_skewed ? ZSTD_LEVEL : ZSTD_LEVEL_MATCHES;
	const size_t size = compress_zstd(
		compressor, span_of(sample->bytes, sample->len), packed, sample->len - 1, level);
	sample->zstd_size = size != 0 ? size : sample->len;
	return sample->is_skewed || is_worth(sample->zstd_size, sample->len);
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
	memset(sample->counts, 0, sizeof(sample->counts));
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

/* Whether equal pairs of values at one position are a quarter more frequent than in random bytes.
 * The sum of the squared counts counts these pairs. */
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

static bool is_worth(size_t size, size_t alternative)
{
	return size * WHOLE < alternative * WORTH;
}

static size_t planes_size(const struct sample *sample, size_t width)
{
	double size = 0;
	for (size_t plane = 0; plane < width; plane++)
		size += plane_size(sample, width, plane);
	return (size_t)size;
}

/* The bytes that an entropy coder needs for one plane of `width`-byte elements, its code table
 * included. 0.72 bits for each value that occurs make up for values that a small sample lacks. */
static double plane_size(const struct sample *sample, size_t width, size_t plane)
{
	ASSERT(plane < width && width <= RESIDUES);
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
