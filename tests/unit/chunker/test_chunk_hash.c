#include "chunker/chunk_hash.h"

#include <check.h>

#include "tests/unit/chunker/vectors.h"

Suite *test_chunk_hash_suite(void);

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static const struct {
	const char *content;
	size_t len;
	const char *chunk;
	const char *file;
} singles[] = {
	{"Hello World!", 12, "d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb",
		"a9dae0ad88b060bdd7e7c87abdcf95b132c95a0414b06d4f6beb68d287b87165"},
	{"\0", 1, "df93298cdbf67cd507aed28d6290c0cf7f9aa0aa88dfa629cffcf98680659410",
		"41f5539a8d8bdd7509fd9a319268aca47ea6d40b33394170182e09fa86345c7e"},
	{"content", 7, "1a29f954b2417916c11a9fc8c9a472a12f3cda1ee011a5d8cfe01e34ee5b98ef",
		"a4b19569f5cc1abb6c9d3ee71afb9e874cd84a9848c1d7ea18d3e9a6bc2a4d3a"},
	{"binary", 6, "819210c8929848fe0758a62fa3f199bc41606627fb460ec81b107a5463932245",
		"ecbeda12032617c5f8afb65305482cb2124650293d614f46a303fee97853b028"},
	{"dummy text data", 15, "082b450fc8a6be62f751c4f14589bb91f6310e675dc86e3c0d830126a070dccc",
		"859ac1954532b2f0f8e1d4fa21fe62f71dc109a2f0e3afc36ad6891b97405291"},
	{"dummy binary data", 17,
		"c634ec116ca600675b7fac8d47e3c0934540799743b4d63311641c0d7cd10a0b",
		"c836b15bda7cea080af858279e4364c02c00317628863476d61395f68d6cc509"},
	{"# Dataset card", 14, "0ecb1ab9a0ed4f0ad6870474c0503ab22b2b00ab1a3bfdee3664d4623b4bfafc",
		"69200a5fab96ab1e7e19382aa48fbe5b37c5814131711cf169a1fffd248d434f"},
};

START_TEST(single_chunk_contents_have_their_published_hashes)
{
	const struct chunk_entry chunk = {
		.id = chunk_hash(span_of(singles[_i].content, singles[_i].len)),
		.size = singles[_i].len};
	vectors_expect_id(chunk.id, singles[_i].chunk);
	vectors_expect_id(chunk_hash_xorb(&chunk, 1), singles[_i].chunk);
	vectors_expect_id(chunk_hash_file(&chunk, 1), singles[_i].file);
}
END_TEST

START_TEST(no_chunks_hash_to_zeros)
{
	vectors_expect_id(chunk_hash_xorb(NULL, 0), ZEROS);
	vectors_expect_id(chunk_hash_file(NULL, 0), ZEROS);
}
END_TEST

START_TEST(two_chunks_have_their_published_hashes)
{
	const struct chunk_entry chunks[] = {
		{.id = chunk_hash(span_text("test chunk 1")), .size = 12},
		{.id = chunk_hash(span_text("test chunk 2 with more data")), .size = 27},
	};
	vectors_expect_id(
		chunks[0].id, "e53fd3edbd53cf540aa423c35b944c342318cff11b171aa2153aa0c0d64c8b25");
	vectors_expect_id(
		chunks[1].id, "acb56d353d6e101c6ee168981df74df7f911f04f08f84461d650c70ddfcdbef0");
	vectors_expect_id(chunk_hash_xorb(chunks, 2),
		"de1ede0bdfad802cc11b4cef13f92fcae9ba112bf292e59fe92166c139c27cc9");
	vectors_expect_id(chunk_hash_file(chunks, 2),
		"e1360e44f050688e9c03c6db28b0839acfb63a80e7c7b5fbe2d2859673841cb9");
	vectors_expect_id(chunk_hash_range(chunks, 2),
		"aa7ce4479fcdfd4ff36bf00c16bbe9e88cee23cc4bc0bcbf6fd687c682db4c9d");
}
END_TEST

static const struct {
	const char *chunks[2];
	size_t count;
	const char *range;
} ranges[] = {
	{{"d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"}, 1,
		"89cb63458e98cb4c75be6b50a5a7b7234b82f05d5348e6925fb71aaf5dc3862b"},
	{{"c28f58387a60d4aa200c311cda7c7f77f686614864f5869eadebf765d0a14a69",
		 "6e4e3263e073ce2c0e78cc770c361e2778db3b054b98ab65e277fc084fa70f22"},
		2, "eb06a8ad81d588ac05d1d9a079232d9c1e7d0b07232fa58091caa7bf333a2768"},
	{{"118bbac5c38b2bca9c2b7ae8307786de066696b91b2b5ccb7dbbd4608c966882",
		 "7884d4de4bcc904767362a91e97eb6c2b6bc5f3a61b640d0cad8bb1129ff0827"},
		2, "82d580dd3896919ef870af78b2c7bd21e67e79777922bbc8cef1fc21630c308c"},
};

START_TEST(range_hash_covers_ids_in_order)
{
	struct chunk_entry chunks[2] = {0};
	for (size_t i = 0; i < ranges[_i].count; i++)
		chunks[i].id = vectors_id_text(ranges[_i].chunks[i]);
	vectors_expect_id(chunk_hash_range(chunks, ranges[_i].count), ranges[_i].range);
}
END_TEST

START_TEST(keyed_hash_of_an_id_is_the_published_one)
{
	const struct chunk_id key =
		vectors_id_text("abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789");
	const struct chunk_id id =
		vectors_id_text("118bbac5c38b2bca9c2b7ae8307786de066696b91b2b5ccb7dbbd4608c966882");
	vectors_expect_id(chunk_hash_keyed(key.bytes, span_of(id.bytes, CHUNK_ID_BYTES)),
		"1e1f5ae2bae99fe030647a14a8c5fe6cdce57826387a7552236dfbebed533e04");
	uint8_t counting[32];
	for (size_t i = 0; i < sizeof(counting); i++)
		counting[i] = (uint8_t)i;
	const struct chunk_id hello = chunk_hash(span_text("Hello World!"));
	vectors_expect_id(chunk_hash_keyed(counting, span_of(hello.bytes, CHUNK_ID_BYTES)),
		"213944381648fd3a12bf8dfc98576416734cf1afdb7ddced216b33a217c15167");
}
END_TEST

START_TEST(xorb_record_payload_hashes_to_the_xorb)
{
	struct buffer xorb = vectors_read_hex("hello-xorb.hex");
	ck_assert_uint_eq(xorb.len, 20);
	const struct chunk_entry chunk = {
		.id = chunk_hash(span_slice(buffer_span(&xorb), 8, 12)), .size = 12};
	vectors_expect_id(chunk_hash_xorb(&chunk, 1),
		"d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb");
	buffer_release(&xorb);
}
END_TEST

START_TEST(shard_hashes_with_the_chunk_key)
{
	struct buffer shard = vectors_read_hex("hello-shard.hex");
	ck_assert_uint_eq(shard.len, 384);
	vectors_expect_id(chunk_hash(buffer_span(&shard)),
		"da6f613c9aee9ce0bd497d2f405777fccf001c9fa3e4a587d60493a99b8aa679");
	buffer_release(&shard);
}
END_TEST

Suite *test_chunk_hash_suite(void)
{
	Suite *const suite = suite_create("chunk_hash");
	TCase *const tests = tcase_create("vectors");
	tcase_add_loop_test(tests, single_chunk_contents_have_their_published_hashes, 0,
		sizeof(singles) / sizeof(*singles));
	tcase_add_test(tests, no_chunks_hash_to_zeros);
	tcase_add_test(tests, two_chunks_have_their_published_hashes);
	tcase_add_loop_test(
		tests, range_hash_covers_ids_in_order, 0, sizeof(ranges) / sizeof(*ranges));
	tcase_add_test(tests, keyed_hash_of_an_id_is_the_published_one);
	tcase_add_test(tests, xorb_record_payload_hashes_to_the_xorb);
	tcase_add_test(tests, shard_hashes_with_the_chunk_key);
	suite_add_tcase(suite, tests);
	return suite;
}
