/* Commands that ask and print: the requests that they send for their words, and how they print the
 * answers, for people and as JSON lines. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/command_fixture.h"
#include "tests/unit/client/web_fixture.h"

#define DIGEST "xxh3-128:00112233445566778899aabbccddeeff"
#define RUN_FACTS \
	"\"steps\":2,\"bytes\":1500,\"keep_steps\":64,\"created\":\"2026-01-02T03:04:05.000Z\"}"
#define RUN_R                                                                              \
	"{\"bucket\":\"b\",\"run\":\"r\",\"epoch\":2,\"head\":4,\"head_digest\":\"" DIGEST \
	"\"," RUN_FACTS
#define RUN_DUE                                                                            \
	"{\"bucket\":\"b\",\"run\":\"r\",\"epoch\":2,\"head\":4,\"head_digest\":\"" DIGEST \
	"\",\"anchor_due\":true," RUN_FACTS
#define RUN_HELD                                                                           \
	"{\"bucket\":\"b\",\"run\":\"r\",\"epoch\":2,\"head\":4,\"head_digest\":\"" DIGEST \
	"\"," HELD "," RUN_FACTS
#define HELD "\"rollback\":{\"step\":3,\"created\":\"2026-01-02T03:04:07.000Z\"}"
#define RUN_0                                                                              \
	"{\"bucket\":\"b\",\"run\":\"t\",\"epoch\":1,\"head\":0,\"head_digest\":\"" DIGEST \
	"\"," RUN_FACTS
#define RUN_S \
	"{\"bucket\":\"b\",\"run\":\"s\",\"epoch\":0,\"head\":null,\"head_digest\":null," RUN_FACTS
#define OBJECT(name, size) \
	"{\"name\":\"" name "\",\"key\":\"k\",\"size\":" size ",\"digest\":\"" DIGEST "\"}"
#define STEP_3                                                        \
	"{\"step\":3,\"epoch\":2,\"label\":\"\",\"digest\":\"" DIGEST \
	"\",\"base\":null,\"collected\":true,"                        \
	"\"created\":\"2026-01-02T03:04:05.000Z\",\"files\":[],\"forms\":[]}"
#define STEP_4                                                                                                   \
	"{\"step\":4,\"epoch\":2,\"label\":\"it-4\",\"digest\":\"" DIGEST                                        \
	"\",\"base\":{\"step\":3,\"digest\":\"" DIGEST                                                           \
	"\"},\"verified\":\"failed\",\"verify_error\":\"bits differ\",\"created\":\"2026-01-02T03:04:06.000Z\"," \
	"\"metadata\":{\"lr\":\"1\"},\"files\":[{\"path\":\"a\",\"size\":400,\"digest\":\"" DIGEST               \
	"\"},"                                                                                                   \
	"{\"path\":\"b\",\"size\":600,\"digest\":\"" DIGEST "\"}],"                                              \
	"\"forms\":[{\"kind\":\"delta\",\"format\":\"ulp-class\",\"objects\":[" OBJECT(                          \
		"delta.safetensors", "1200") "]}]}"
#define BUCKETS(rest)                                                                                   \
	"<ListAllMyBucketsResult><Buckets><Bucket><Name>b</Name><CreationDate>2026-01-02T03:04:05.000Z" \
	"</CreationDate></Bucket></Buckets>" rest "</ListAllMyBucketsResult>"
#define BUCKETS_B_C                                                        \
	"<ListAllMyBucketsResult><Buckets><Bucket><Name>b</Name></Bucket>" \
	"<Bucket><Name>c</Name></Bucket></Buckets></ListAllMyBucketsResult>"
#define CONTENT(key)                                                                \
	"<Contents><Key>" key                                                       \
	"</Key><Size>7</Size><LastModified>2026-01-02T03:04:05.000Z</LastModified>" \
	"<ETag>\"e\"</ETag></Contents>"
#define LIST(content) \
	"<ListBucketResult><EncodingType>url</EncodingType>" content "</ListBucketResult>"
#define REPLICA(id, rest)                                                                \
	"{\"id\":\"" id "\",\"state\":\"ready\",\"since\":\"2026-01-02T03:04:05.000Z\"," \
	"\"updated\":\"2026-01-02T03:04:05.000Z\",\"lease_s\":30" rest "}"
#define STATES                                                                                                                        \
	"\"lease_s\":30,\"head\":4,\"oldest\":2,\"without_step\":3,\"states\":{\"idle\":16,\"fetching\":8,\"staging\":4,\"ready\":2," \
	"\"error\":1},\"expired\":1"
#define X16   "0123456789abcdef"
#define X64   X16 X16 X16 X16
#define X256  X64 X64 X64 X64
#define X1024 X256 X256 X256 X256

#define LIST_OF(prefix) "GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=" prefix
#define LIST_F          LIST_OF("f%2F")
#define LISTED_F        LIST_F "\n"

struct scripted {
	const char *request; /* "METHOD TARGET" */
	int status;
	const char *body;
};

static const struct command_case {
	command_fn *run;
	enum command_bit bit;
	const char *words;
	const char *trace;  /* all requests */
	const char *output; /* the output must have each of these lines, in this order */
	struct scripted script[6];
} cases[] = {
	{command_ls, COMMAND_LS, "", "GET /\nGET /?continuation-token=t%2F1\n",
		"2026-01-02T03:04:05.000Z  b",
		{{"GET /", 200, BUCKETS("<ContinuationToken>t/1</ContinuationToken>")},
			{"GET /?continuation-token=t%2F1", 200, BUCKETS("")}}},
	{command_ls, COMMAND_LS, "--json", "GET /\n",
		"{\"bucket\":\"b\",\"created\":\"2026-01-02T03:04:05.000Z\"}",
		{{"GET /", 200, BUCKETS("")}}},
	{command_ls, COMMAND_LS, "b/a",
		"GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=a&delimiter=%2F\n"
		"GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=a&delimiter=%2F&continuation-token=n\n",
		"             7  2026-01-02T03:04:05.000Z  a b\n  a/\n  ac",
		{{"GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=a&delimiter=%2F", 200,
			 LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>" CONTENT(
				 "a%20b") "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>")},
			{"GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=a&delimiter=%2F&continuation-token=n",
				200, LIST("<IsTruncated>false</IsTruncated>" CONTENT("ac"))}}},
	{command_ls, COMMAND_LS, "--json --recursive --limit 1 b",
		"GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=\n",
		"{\"bucket\":\"b\",\"key\":\"x\",\"bytes\":7,\"modified\":\"2026-01-02T03:04:05.000Z\",\"etag\":",
		{{"GET /b?list-type=2&encoding-type=url&max-keys=1000&prefix=", 200,
			LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>" CONTENT(
				"x") CONTENT("y"))}}},
	{command_rm, COMMAND_RM, "b/one b/a%/two",
		"HEAD /b/one\nDELETE /b/one\nHEAD /b/a%25/two\n" LIST_OF(
			"a%25%2Ftwo") "\nDELETE /b/a%25/two\n",
		"removed b/one\nremoved b/a%/two",
		{{"HEAD /b/one", 200, ""}, {"DELETE /b/one", 204, ""},
			{"HEAD /b/a%25/two", 403, ""},
			/* it may not be read */ {LIST_OF("a%25%2Ftwo"), 403, ""},
			{"DELETE /b/a%25/two", 204, ""}}},
	{command_rm, COMMAND_RM, "b/" X1024, "HEAD /b/" X1024 "\nDELETE /b/" X1024 "\n",
		"removed b/" X1024, {{"HEAD /b/" X1024, 200, ""}, {"DELETE /b/" X1024, 204, ""}}},
	{command_rm, COMMAND_RM, "--json s3://b/one", "HEAD /b/one\nDELETE /b/one\n",
		"{\"event\":\"removed\",\"bucket\":\"b\",\"key\":\"one\"}",
		{{"HEAD /b/one", 200, ""}, {"DELETE /b/one", 204, ""}}},
	{command_rm, COMMAND_RM, "-r b/f/",
		LISTED_F "POST /api/buckets/-/b/batch {\"type\":\"deleteFile\",\"path\":\"f/a\"}\n"
			 "{\"type\":\"deleteFile\",\"path\":\"f/b\"}\n\n",
		"removed b/f/a\nremoved b/f/b",
		{{LIST_F, 200, LIST(CONTENT("f/a") CONTENT("f/b"))},
			{"POST /api/buckets/-/b/batch", 200, "{\"success\":true,\"failed\":[]}"}}},
	{command_rm, COMMAND_RM, "-r b/f", "HEAD /b/f\n" LISTED_F "DELETE /b/f/\n", "removed b/f/",
		{{"HEAD /b/f", 404, ""}, {LIST_F, 200, LIST(CONTENT("f/"))},
			{"DELETE /b/f/", 204, ""}}},
	{command_rm, COMMAND_RM, "-r --dry-run b/f/",
		LISTED_F
		"POST /api/buckets/-/b/batch {\"type\":\"judgeDelete\",\"path\":\"f/a\"}\n\n",
		"would remove b/f/a",
		{{LIST_F, 200, LIST(CONTENT("f/a"))},
			{"POST /api/buckets/-/b/batch", 200, "{\"success\":true,\"failed\":[]}"}}},
	{command_rm, COMMAND_RM, "-r --dry-run b/f/",
		LISTED_F
		"POST /api/buckets/-/b/batch {\"type\":\"judgeDelete\",\"path\":\"f/a\"}\n\n",
		"would remove b/f/a",
		{{LIST_F, 200, LIST(CONTENT("f/a"))}, {"POST /api/buckets/-/b/batch", 404, ""}}},
	{command_mb, COMMAND_MB, "one --json", "HEAD /one\nPUT /one\n",
		"{\"event\":\"bucket_made\",\"bucket\":\"one\"}",
		{{"HEAD /one", 404, ""}, {"PUT /one", 200, ""}}},
	{command_rb, COMMAND_RB, "one two/", "DELETE /one\nDELETE /two\n",
		"removed bucket one\nremoved bucket two",
		{{"DELETE /one", 204, ""}, {"DELETE /two", 204, ""}}},
	{command_rb, COMMAND_RB, "--force one", "DELETE /api/buckets/-/one\n", "removed bucket one",
		{{"DELETE /api/buckets/-/one", 200, "{}"}}},
	{command_runs, COMMAND_RUNS, "rm b/r b/s", "DELETE /v1/runs/b/r\nDELETE /v1/runs/b/s\n",
		"removed run b/r\nremoved run b/s",
		{{"DELETE /v1/runs/b/r", 204, ""}, {"DELETE /v1/runs/b/s", 204, ""}}},
	{command_cp, COMMAND_CP, "b/f/one c/g/", "HEAD /b/f/one\nPUT /c/g/one\n",
		"copied b/f/one to c/g/one",
		{{"HEAD /b/f/one", 200, ""}, {"PUT /c/g/one", 200, ""}}},
	{command_cp, COMMAND_CP, "--create-bucket --json b/one c/two",
		"HEAD /b/one\nPUT /c\nPUT /c/two\n",
		"{\"event\":\"copied\",\"bucket\":\"c\",\"key\":\"two\",\"bytes\":0}",
		{{"HEAD /b/one", 200, ""}, {"PUT /c", 200, ""}, {"PUT /c/two", 200, ""}}},
	{command_runs, COMMAND_RUNS, "b", "GET /v1/runs/b\nGET /v1/runs/b?after=r\n",
		"b/r  step 4, 2 kept, 1.5 kB\nb/s  no step\nb/t  step 0,",
		{{"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "],\"next\":\"r\"}"},
			{"GET /v1/runs/b?after=r", 200, "{\"runs\":[" RUN_S "," RUN_0 "]}"}}},
	{command_runs, COMMAND_RUNS, "--json", "GET /\nGET /v1/runs/b\n",
		"{\"bucket\":\"b\",\"run\":\"r\",\"epoch\":2,\"head\":4,\"head_digest\":\"" DIGEST
		"\",\"steps\":2,\"bytes\":1500,\"keep_steps\":64,"
		"\"created\":\"2026-01-02T03:04:05.000Z\"}",
		{{"GET /", 200, BUCKETS("")}, {"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "]}"}}},
	{command_runs, COMMAND_RUNS, "",
		"GET /\nGET /v1/runs/b\nGET /?continuation-token=t\nGET /v1/runs/c\n",
		"b/r  step 4\nb/s  no step",
		{{"GET /", 200, BUCKETS("<ContinuationToken>t</ContinuationToken>")},
			{"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "]}"},
			{"GET /?continuation-token=t", 200,
				"<ListAllMyBucketsResult><Buckets><Bucket><Name>c</Name></Bucket></Buckets></ListAllMyBucketsResult>"},
			{"GET /v1/runs/c", 200, "{\"runs\":[" RUN_S "]}"}}},
	{command_runs, COMMAND_RUNS, "settings b/r", "GET /v1/runs/b/r\n",
		"keep_steps = 64\nverify = true",
		{{"GET /v1/runs/b/r", 200, "{\"settings\":{\"keep_steps\":64,\"verify\":true}}"}}},
	{command_runs, COMMAND_RUNS,
		"settings b/r keep_steps=8 verify=false webhook=null adopt=x/y=z",
		"PUT /v1/runs/b/r/settings {\"keep_steps\":8,\"verify\":false,\"webhook\":null,\"adopt\":\"x/y=z\"}\n",
		"keep_steps = 8\nolder steps are removed in the background: within 15 minutes those"
		" that readers may be fetching, later those that are pinned or held",
		{{"PUT /v1/runs/b/r/settings", 200, "{\"settings\":{\"keep_steps\":8}}"}}},
	{command_steps, COMMAND_STEPS, "b/r",
		"GET /v1/runs/b/r\nGET /v1/runs/b/r/steps?from=0\nGET /v1/runs/b/r/steps?from=4\n",
		"  step  published                 digest                                     forms\n"
		"     3  2026-01-02T03:04:05.000Z  " DIGEST "  removed\n"
		"     4  2026-01-02T03:04:06.000Z  " DIGEST
		"  delta 1.2 kB  it-4  FAILED: bits differ",
		{{"GET /v1/runs/b/r", 200, RUN_R},
			{"GET /v1/runs/b/r/steps?from=0", 200,
				"{\"steps\":[" STEP_3 "],\"next\":4}"},
			{"GET /v1/runs/b/r/steps?from=4", 200, "{\"steps\":[" STEP_4 "]}"}}},
	{command_steps, COMMAND_STEPS, "--json --limit 1 b/r",
		"GET /v1/runs/b/r\nGET /v1/runs/b/r/steps?from=4\n",
		"{\"step\":4,\"label\":\"it-4\",\"digest\":\"" DIGEST
		"\",\"epoch\":2,\"collected\":false,\"verified\":\"failed\","
		"\"verify_error\":\"bits differ\",\"created\":\"2026-01-02T03:04:06.000Z\",\"metadata\":{\"lr\":\"1\"},"
		"\"forms\":[{\"kind\":\"delta\",\"format\":\"ulp-class\",\"bytes\":1200,\"objects\":1}]}",
		{{"GET /v1/runs/b/r", 200, RUN_R},
			{"GET /v1/runs/b/r/steps?from=4", 200, "{\"steps\":[" STEP_4 "]}"}}},
	{command_steps, COMMAND_STEPS, "--limit 9 b/r", /* more than there are */
		"GET /v1/runs/b/r\nGET /v1/runs/b/r/steps?from=0\n",
		"     4  2026-01-02T03:04:06.000Z",
		{{"GET /v1/runs/b/r", 200, RUN_R},
			{"GET /v1/runs/b/r/steps?from=0", 200, "{\"steps\":[" STEP_4 "]}"}}},
	{command_steps, COMMAND_STEPS, "b/s", "GET /v1/runs/b/s\n", "",
		{{"GET /v1/runs/b/s", 200, RUN_S}}},
	{command_pins, COMMAND_PINS, "b/r", "GET /v1/runs/b/r/pins\n",
		"best \nstep 3  \n2026-01-02T03:04:05.000Z  until 2026-02-02T03:04:05.000Z",
		{{"GET /v1/runs/b/r/pins", 200,
			"{\"pins\":[{\"name\":\"best\",\"step\":3,\"created\":\"2026-01-02T03:04:05.000Z\",\"expires\":\"2026-02-02T03:04:05.000Z\"}]}"}}},
	{command_pins, COMMAND_PINS, "--json b/r", "GET /v1/runs/b/r/pins\n",
		"{\"name\":\"best\",\"step\":3,",
		{{"GET /v1/runs/b/r/pins", 200,
			"{\"pins\":[{\"name\":\"best\",\"step\":3,\"created\":\"2026-01-02T03:04:05.000Z\",\"expires\":null}]}"}}},
	{command_pins, COMMAND_PINS, "--ttl 60 b/r add be:st 3",
		"PUT /v1/runs/b/r/pins/be%3Ast {\"step\":3,\"ttl_s\":60}\n",
		"step 3 of b/r is kept as be:st",
		{{"PUT /v1/runs/b/r/pins/be%3Ast", 201, "{\"name\":\"be:st\"}"}}},
	{command_pins, COMMAND_PINS, "b/r rm best", "DELETE /v1/runs/b/r/pins/best\n",
		"best is not a pin any more", {{"DELETE /v1/runs/b/r/pins/best", 204, ""}}},
	{command_fleet, COMMAND_FLEET, "rollback b/r 3", "PUT /v1/runs/b/r/rollback {\"step\":3}\n",
		"the fleet of b/r is held at step 3; its newest is step 4. "
		"`deltabucket fleet forward b/r` ends that",
		{{"PUT /v1/runs/b/r/rollback", 200, RUN_HELD}}},
	{command_fleet, COMMAND_FLEET, "--json rollback b/r 3",
		"PUT /v1/runs/b/r/rollback {\"step\":3}\n",
		"{\"event\":\"rolled_back\",\"run\":\"b/r\",\"step\":3,\"head\":4}",
		{{"PUT /v1/runs/b/r/rollback", 200, RUN_HELD}}},
	{command_fleet, COMMAND_FLEET, "forward b/r", "DELETE /v1/runs/b/r/rollback\n",
		"the fleet of b/r takes the newest step, 4",
		{{"DELETE /v1/runs/b/r/rollback", 200, RUN_R}}},
	{command_fleet, COMMAND_FLEET, "--json forward b/r", "DELETE /v1/runs/b/r/rollback\n",
		"{\"event\":\"forwarded\",\"run\":\"b/r\",\"head\":4}",
		{{"DELETE /v1/runs/b/r/rollback", 200, RUN_R}}},
	{command_replicas, COMMAND_REPLICAS, "b/r",
		"GET /v1/runs/b/r/replicas?limit=1000\nGET /v1/runs/b/r/replicas?limit=1000&after=w1\n",
		"w1 \n  ready  \n       2  2 (9 s)  \nw2 \n  expired  \n  -  \ndisk full\n"
		"head is step 4; ready 2, idle 16, fetching 8, staging 4, error 1, expired 1, "
		"without a step 3",
		{{"GET /v1/runs/b/r/replicas?limit=1000", 200,
			 "{\"replicas\":[" REPLICA("w1",
				 ",\"step\":2,\"staleness\":{\"steps\":2,\"seconds\":9}") "],\"next\":\"w1\"," STATES
											  "}"},
			{"GET /v1/runs/b/r/replicas?limit=1000&after=w1", 200,
				"{\"replicas\":[" REPLICA("w2",
					",\"expired\":true,\"error\":\"disk full\"") "]," STATES
										     "}"}}},
	{command_status, COMMAND_STATUS, "b",
		"GET /-/ready\nGET /-/metrics\nGET /v1/runs/b\nGET /v1/runs/b/r\nGET /v1/runs/b/r/steps/4\n"
		"GET /v1/runs/b/r/replicas?limit=1\n",
		"is ready; 5.0 GB of its disk's 20.0 GB are free\nb/r  step 4, proof failed, anchor due  2 kept in 1.5 kB "
		"(500 B less than full copies)  31 replicas, 1 in error, "
		"3 without a step, the slowest 2 behind",
		{{"GET /-/ready", 200, ""},
			{"GET /-/metrics", 200,
				"# HELP x\ndeltabucket_disk_bytes 20000000000\ndeltabucket_disk_free_bytes 5000000000\n"},
			{"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "]}"},
			{"GET /v1/runs/b/r", 200, RUN_DUE},
			{"GET /v1/runs/b/r/steps/4", 200, STEP_4},
			{"GET /v1/runs/b/r/replicas?limit=1", 200,
				"{\"replicas\":[]," STATES "}"}}},
	{command_status, COMMAND_STATUS, "--json b",
		"GET /-/ready\nGET /-/metrics\nGET /v1/runs/b\nGET /v1/runs/b/r\nGET /v1/runs/b/r/steps/4\nGET /v1/runs/b/r/replicas?limit=1\n",
		"\"ready\":true,\"warnings\":[]}\n{\"event\":\"run\",\"bucket\":\"b\",\"run\":\"r\",\"head\":4,"
		"\"verified\":\"failed\",\"anchor_due\":false,\"steps\":2,\"bytes\":1500,"
		"\"full_bytes\":1000,\"saved_bytes\":500,\"replicas\":31,"
		"\"replicas_in_error\":1,\"replicas_without_step\":3,\"states\":{\"idle\":16,"
		"\"fetching\":8,\"staging\":4,\"ready\":2,\"error\":1},\"replicas_expired\":1,\"lag_steps\":2}",
		{{"GET /-/ready", 200, ""}, {"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "]}"},
			{"GET /v1/runs/b/r", 200, RUN_R}, {"GET /v1/runs/b/r/steps/4", 200, STEP_4},
			{"GET /v1/runs/b/r/replicas?limit=1", 200,
				"{\"replicas\":[]," STATES "}"}}},
	{command_status, COMMAND_STATUS, "b",
		"GET /-/ready\nGET /-/metrics\nGET /v1/runs/b\nGET /v1/runs/b/s\n"
		"GET /v1/runs/b/s/replicas?limit=1\n",
		"b/s  no step  2 kept in 1.5 kB (0 B less than full copies)  no replicas",
		{{"GET /-/ready", 200, ""}, {"GET /v1/runs/b", 200, "{\"runs\":[" RUN_S "]}"},
			{"GET /v1/runs/b/s", 200, RUN_S},
			{"GET /v1/runs/b/s/replicas?limit=1", 200,
				"{\"replicas\":[],\"states\":{}}"}}},
	{command_status, COMMAND_STATUS, "b/r",
		"GET /-/ready\nGET /-/metrics\nGET /v1/runs/b/r\nGET /v1/runs/b/r/steps/4\n"
		"GET /v1/runs/b/r/replicas?limit=1\n",
		"is ready\nb/r  step 4, proof failed  2 kept in 1.5 kB (500 B less than full copies)  "
		"31 replicas, 1 in error, 3 without a step, the slowest 1 behind, reports up to 150 s old\n"
		"b/r  its fleet is held at step 3 since 2026-01-02T03:04:07.000Z",
		{{"GET /-/ready", 200, ""}, {"GET /v1/runs/b/r", 200, RUN_HELD},
			{"GET /v1/runs/b/r/steps/4", 200, STEP_4},
			{"GET /v1/runs/b/r/replicas?limit=1", 200,
				"{\"oldest_report_s\":150,\"replicas\":[]," STATES "}"}}},
	{command_status, COMMAND_STATUS, "--json b/r",
		"GET /-/ready\nGET /-/metrics\nGET /v1/runs/b/r\nGET /v1/runs/b/r/steps/4\n"
		"GET /v1/runs/b/r/replicas?limit=1\n",
		"\"lag_steps\":1,\"oldest_report_s\":150," HELD "}",
		{{"GET /-/ready", 200, ""}, {"GET /v1/runs/b/r", 200, RUN_HELD},
			{"GET /v1/runs/b/r/steps/4", 200, STEP_4},
			{"GET /v1/runs/b/r/replicas?limit=1", 200,
				"{\"oldest_report_s\":150,\"replicas\":[]," STATES "}"}}},
	{command_replicas, COMMAND_REPLICAS, "b/r", "GET /v1/runs/b/r/replicas?limit=1000\n",
		"replica \n  paused \nw1 \n  ready  \n       3  0 (0 s)  \n  1410 ms  \n"
		"head is step 4, but the fleet is held at step 3; ready 2, idle 16, fetching 8, staging 4, error 1, expired 1, "
		"without a step 3; reports up to 2 min old",
		{{"GET /v1/runs/b/r/replicas?limit=1000", 200,
			"{\"oldest_report_s\":150,\"replicas\":[" REPLICA("w1",
				",\"step\":3,\"pause_ms\":1410,\"staleness\":{\"steps\":0,\"seconds\":0}") "]," HELD
													   "," STATES
													   "}"}}},
	{command_status, COMMAND_STATUS, "b/s",
		"GET /-/ready\nGET /-/metrics\nGET /v1/runs/b/s\nGET /v1/runs/b/s/replicas?limit=1\n",
		"is ready\nb/s  no step  2 kept in 1.5 kB (0 B less than full copies)  no replicas",
		{{"GET /-/ready", 200, ""}, {"GET /v1/runs/b/s", 200, RUN_S},
			{"GET /v1/runs/b/s/replicas?limit=1", 200,
				"{\"replicas\":[],\"states\":{}}"}}},
	{command_damage, COMMAND_DAMAGE, "", "GET /-/damage\n",
		"scrub is at 1.5 kB of 20.0 kB\nscrub has not been through yet",
		{{"GET /-/damage", 200,
			"{\"chunks\":0,\"packs\":[],\"keys\":[],\"keys_in_all\":0,\"steps\":[],\"steps_in_all\":0,"
			"\"scrub\":{\"round\":{\"bytes\":1500,\"store_bytes\":20000}}}"}}},
	{command_damage, COMMAND_DAMAGE, "--json", "GET /-/damage\n",
		"{\"chunks\":0,\"scrub\":{\"last\":{\"ended\":\"then\"}}}",
		{{"GET /-/damage", 200,
			"{\"chunks\":0,\"scrub\":{\"last\":{\"ended\":\"then\"}}}"}}},
	{command_keys, COMMAND_KEYS, "", "GET /-/keys\n",
		"K1 \nK2                       ns               ci                   b=read c=write\n"
		"damaged: it opens nothing; remove it",
		{{"GET /-/keys", 200,
			"{\"keys\":[{\"key_id\":\"K1\"},{\"key_id\":\"K2\",\"namespace\":\"ns\",\"name\":\"ci\",\"grants\":[\"b=read\",\"c=write\"]},"
			"{\"key_id\":\"damaged-7\",\"damaged\":true}]}"}}},
	{command_keys, COMMAND_KEYS, "add --name ci --namespace ns --grant b=read --grant c=write",
		"POST /-/keys {\"name\":\"ci\",\"namespace\":\"ns\",\"grants\":[\"b=read\",\"c=write\"]}\n",
		"key id  K9\nsecret  S\ntoken   T",
		{{"POST /-/keys", 201, "{\"key_id\":\"K9\",\"secret\":\"S\",\"token\":\"T\"}"}}},
	{command_keys, COMMAND_KEYS, "--json rm K/9", "DELETE /-/keys/K%2F9\n",
		"{\"event\":\"revoked\",\"key_id\":\"K/9\"}", {{"DELETE /-/keys/K%2F9", 204, ""}}},
};

static void answer_script(void *owner, const struct web_request *request, struct web_reply *reply)
{
	const struct scripted *const script = owner;
	char line[4200];
	snprintf(line, sizeof line, "%s %s", request->method, request->target);
	for (size_t i = 0; i < 6 && script[i].request != NULL; i++) {
		if (strcmp(script[i].request, line) != 0)
			continue;
		reply->status = script[i].status;
		buffer_add_text(&reply->body, script[i].body);
		return;
	}
}

/* Checks that the text has each of the lines, in this order. */
static void expect_lines(const char *text, const char *lines)
{
	struct span rest = span_text(lines);
	struct span line;
	const char *at = text;
	while (rest.len > 0 && span_split(&rest, '\n', &line)) {
		const char *const found = memmem(at, strlen(at), line.data, line.len);
		ck_assert_msg(found != NULL, "\"%.*s\" is missing in:\n%s", (int)line.len,
			(const char *)line.data, text);
		at = found + line.len;
	}
}

START_TEST(a_command_asks_and_shows)
{
	const struct command_case *const row = &cases[_i];
	struct web *const web = web_start(answer_script, (void *)row->script);
	struct command_result result =
		command_fixture_run(row->run, row->bit, web_endpoint(web), row->words);
	ck_assert_msg(result.status == 0, "\"%s\": %s", row->words, result.err.text);
	ck_assert_str_eq(web_trace(web), row->trace);
	expect_lines(buffer_text(&result.output), row->output);
	ck_assert(row->output[0] != '\0' || result.output.len == 0);
	command_result_release(&result);
	web_stop(web);
}
END_TEST

static void answer_all(void *owner, const struct web_request *request, struct web_reply *reply)
{
	const struct scripted *const same = owner;
	(void)request;
	reply->status = same->status;
	buffer_add_text(&reply->body, same->body);
}

static const struct {
	struct scripted answer;
	enum error_kind kind; /* ERROR_NONE: any */
} refusals[] = {
	{{NULL, 404, ""}, ERROR_NONE},
	{{NULL, 403, "{\"error\":{\"code\":\"denied\",\"message\":\"no\"}}"}, ERROR_DENIED},
	{{NULL, 200, "nonsense"}, ERROR_UPSTREAM},
	{{NULL, 200, "{}"}, ERROR_UPSTREAM},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

/* Commands that need no member of the answer. A body that is not JSON, like a proxy's page, did not
 * come from the server; it does not matter where no body is expected. */
static bool is_enough(const struct command_case *row, const struct scripted *answer)
{
	const bool is_removal =
		strncmp(row->trace, "DELETE", 6) == 0 || strncmp(row->trace, "HEAD", 4) == 0;
	const bool is_change = strncmp(row->trace, "GET", 3) != 0;
	if (answer->status != 200 || strcmp(answer->body, "{}") != 0)
		return answer->status == 200 && is_removal;
	return is_change || row->run == command_keys;
}

/* A command fails when the server refuses its request, or when the answer makes no sense although
 * one is expected. */
START_TEST(a_refusal_is_a_failure)
{
	const struct command_case *const row = &cases[_i / REFUSALS];
	const size_t kind = (size_t)_i % REFUSALS;
	if (is_enough(row, &refusals[kind].answer))
		return;
	struct web *const web = web_start(answer_all, (void *)&refusals[kind].answer);
	struct command_result result =
		command_fixture_run(row->run, row->bit, web_endpoint(web), row->words);
	ck_assert_msg(result.status == -1, "\"%s\" with answer %zu", row->words, kind);
	ck_assert_msg(refusals[kind].kind == ERROR_NONE || result.err.kind == refusals[kind].kind,
		"\"%s\" with answer %zu: %s: %s", row->words, kind,
		error_kind_name(result.err.kind), result.err.text);
	ck_assert(!result.usage && result.err.text[0] != '\0');
	command_result_release(&result);
	web_stop(web);
}
END_TEST

START_TEST(an_object_that_cannot_be_removed_stops_no_other)
{
	static const struct scripted script[6] = {{"HEAD /b/one", 200, ""},
		{"DELETE /b/one", 403, ""}, {"HEAD /b/two", 200, ""}, {"DELETE /b/two", 204, ""}};
	struct web *const web = web_start(answer_script, (void *)script);
	struct command_result result =
		command_fixture_run(command_rm, COMMAND_RM, web_endpoint(web), "b/one b/two");
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(strstr(result.err.text, "b/one") != NULL, "%s", result.err.text);
	ck_assert_int_eq(result.err.kind, ERROR_DENIED);
	ck_assert_str_eq(
		web_trace(web), "HEAD /b/one\nDELETE /b/one\nHEAD /b/two\nDELETE /b/two\n");
	command_result_release(&result);
	web_stop(web);
}
END_TEST

#define NO_BUCKET "<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>"
#define NOT_EMPTY "<Error><Code>BucketNotEmpty</Code><Message>no</Message></Error>"

static const struct {
	command_fn *run;
	enum command_bit bit;
	const char *words;
	enum error_kind kind;
	const char *says;
	const char *trace;
	struct scripted script[6];
} refused[] = {
	{command_rm, COMMAND_RM, "b/one b/two", ERROR_NO_KEY, "there is no object b/one",
		"HEAD /b/one\nHEAD /b/two\nDELETE /b/two\n",
		{{"HEAD /b/two", 200, ""}, {"DELETE /b/two", 204, ""}}},
	{command_rm, COMMAND_RM, "-r b/f/", ERROR_NO_KEY, "there is nothing at b/f/", LISTED_F,
		{{LIST_F, 200, LIST("")}}},
	{command_rm, COMMAND_RM, "-r b/f/", ERROR_DENIED,
		"removing b/f/: 1 of 2 objects stay, the first because: no",
		LISTED_F
		"POST /api/buckets/-/b/batch {\"type\":\"deleteFile\",\"path\":\"f/a\"}\n{\"type\":\"deleteFile\",\"path\":\"f/b\"}\n\n",
		{{LIST_F, 200, LIST(CONTENT("f/a") CONTENT("f/b"))},
			{"POST /api/buckets/-/b/batch", 422,
				"{\"failed\":[{\"path\":\"f/a\",\"code\":\"denied\",\"error\":\"no\"}]}"}}},
	{command_rm, COMMAND_RM, "b/one b/two", ERROR_NO_KEY,
		"2 of 2 failed, the first with: there is no object b/one",
		"HEAD /b/one\nHEAD /b/two\n" LIST_OF("two") "\n",
		{{"HEAD /b/two", 403, ""}, {LIST_OF("two"), 200, LIST(CONTENT("two2"))}}},
	{command_mb, COMMAND_MB, "b c", ERROR_BUCKET_OWNED,
		"1 of 2 failed, the first with: there is already a bucket b",
		"HEAD /b\nHEAD /c\nPUT /c\n",
		{{"HEAD /b", 200, ""}, {"HEAD /c", 404, ""}, {"PUT /c", 200, ""}}},
	{command_mb, COMMAND_MB, "b", ERROR_BUCKET_OWNED, "there is already a bucket b",
		"HEAD /b\n", {{"HEAD /b", 200, ""}}},
	{command_rb, COMMAND_RB, "b", ERROR_BUCKET_NOT_EMPTY,
		"`deltabucket rb --force b` removes it", "DELETE /b\nGET /v1/runs/b\n",
		{{"DELETE /b", 409, NOT_EMPTY}, {"GET /v1/runs/b", 200, "{\"runs\":[]}"}}},
	{command_rb, COMMAND_RB, "b", ERROR_BUCKET_HAS_RUNS, "`deltabucket runs rm b/r` ends one",
		"DELETE /b\nGET /v1/runs/b\n",
		{{"DELETE /b", 409, NOT_EMPTY}, {"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "]}"}}},
	{command_rb, COMMAND_RB, "--force b", ERROR_BUCKET_HAS_RUNS, "holds runs",
		"DELETE /api/buckets/-/b\nGET /v1/runs/b\n",
		{{"DELETE /api/buckets/-/b", 409, "{\"error\":\"x\"}"},
			{"GET /v1/runs/b", 200, "{\"runs\":[" RUN_R "]}"}}},
	{command_cp, COMMAND_CP, "b/one new/two", ERROR_NO_BUCKET,
		"there is no bucket new; --create-bucket makes it. A file is written as a path: ./new/two",
		"HEAD /b/one\nPUT /new/two\n",
		{{"HEAD /b/one", 200, ""}, {"PUT /new/two", 404, NO_BUCKET}}},
	{command_cp, COMMAND_CP, "b/one New/two", ERROR_NO_BUCKET,
		"there is no bucket New, and none can be made of this name: it may hold only a-z, 0-9",
		"HEAD /b/one\nPUT /New/two\n",
		{{"HEAD /b/one", 200, ""}, {"PUT /New/two", 404, NO_BUCKET}}},
};

START_TEST(what_is_refused_is_said_with_what_helps)
{
	struct web *const web = web_start(answer_script, (void *)refused[_i].script);
	struct command_result result = command_fixture_run(
		refused[_i].run, refused[_i].bit, web_endpoint(web), refused[_i].words);
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == refused[_i].kind &&
			strstr(result.err.text, refused[_i].says) != NULL,
		"%s", result.err.text);
	ck_assert_str_eq(web_trace(web), refused[_i].trace);
	ck_assert(!result.usage);
	command_result_release(&result);
	web_stop(web);
}
END_TEST

static const struct {
	command_fn *run;
	enum command_bit bit;
	enum error_kind kind;
	struct scripted script[6];
} halves[] = {
	{command_runs, COMMAND_RUNS, ERROR_DENIED,
		{{"GET /", 200, BUCKETS_B_C}, {"GET /v1/runs/b", 403, ""},
			{"GET /v1/runs/c", 200, "{\"runs\":[" RUN_R "]}"}}},
	{command_status, COMMAND_STATUS, ERROR_UPSTREAM,
		{{"GET /-/ready", 503, ""}, {"GET /", 200, BUCKETS_B_C},
			{"GET /v1/runs/b", 200, "{\"runs\":[]}"},
			{"GET /v1/runs/c", 200, "{\"runs\":[]}"}}},
};

/* What is damaged is printed, and the exit status says that something is. */
START_TEST(damage_is_told_and_is_a_failure)
{
	static const struct scripted script[6] = {{"GET /-/damage", 200,
		"{\"chunks\":3,\"keys\":[{\"bucket\":\"b\",\"key\":\"k/1\",\"version\":\"null\",\"current\":true},"
		"{\"bucket\":\"b\",\"key\":\"k/1\",\"version\":\"0011\",\"current\":false}],\"keys_in_all\":7,"
		"\"steps\":[{\"bucket\":\"b\",\"run\":\"r\",\"step\":9,\"form\":\"fold\"}],\"steps_in_all\":1,"
		"\"scrub\":{\"last\":{\"ended\":\"then\"}}}"}};
	struct web *const web = web_start(answer_script, (void *)script);
	struct command_result result =
		command_fixture_run(command_damage, COMMAND_DAMAGE, web_endpoint(web), "");
	ck_assert_int_eq(result.status, -1);
	ck_assert_int_eq(result.err.kind, ERROR_CORRUPT);
	ck_assert_ptr_nonnull(strstr(result.err.text, "3 stored chunks are damaged"));
	expect_lines(buffer_text(&result.output),
		"key   b/k/1\nkey   b/k/1  version 0011\nand 5 more keys\nfold  b/r  step 9\n"
		"scrub was last through at then");
	command_result_release(&result);
	web_stop(web);
}
END_TEST

/* A script that looks at the exit status must not take half of a list for the whole. */
START_TEST(a_failure_is_one_whatever_goes_well_behind_it)
{
	struct web *const web = web_start(answer_script, (void *)halves[_i].script);
	struct command_result result =
		command_fixture_run(halves[_i].run, halves[_i].bit, web_endpoint(web), "");
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.err.kind == halves[_i].kind, "%s", result.err.text);
	command_result_release(&result);
	web_stop(web);
}
END_TEST

static const struct {
	command_fn *run;
	enum command_bit bit;
	const char *words;
} misuses[] = {
	{command_ls, COMMAND_LS, "/key"},
	{command_rm, COMMAND_RM, "bucket"},
	{command_rm, COMMAND_RM, "-r bucket"},
	{command_mb, COMMAND_MB, "good b/k"},
	{command_rb, COMMAND_RB, "b/k"},
	{command_cp, COMMAND_CP, "./here ../there"},
	{command_cp, COMMAND_CP, "here ./there"},
	{command_cp, COMMAND_CP, "b/ c/"},
	{command_cp, COMMAND_CP, "b/k b/k"},
	{command_cp, COMMAND_CP, "d/k d/"},
	{command_runs, COMMAND_RUNS, "rm b"},
	{command_runs, COMMAND_RUNS, "b/r"},
	{command_runs, COMMAND_RUNS, "b c"},
	{command_runs, COMMAND_RUNS, "settings b/r keep_steps"},
	{command_runs, COMMAND_RUNS, "settings b/r =8"},
	{command_runs, COMMAND_RUNS, "settings b keep_steps=8"},
	{command_steps, COMMAND_STEPS, "b"},
	{command_fleet, COMMAND_FLEET, "rollback b/r"},
	{command_fleet, COMMAND_FLEET, "rollback b/r three"},
	{command_fleet, COMMAND_FLEET, "rollback b 3"},
	{command_fleet, COMMAND_FLEET, "forward b/r 3"},
	{command_fleet, COMMAND_FLEET, "stop b/r"},
	{command_pins, COMMAND_PINS, "b"},
	{command_pins, COMMAND_PINS, "b/r add best"},
	{command_pins, COMMAND_PINS, "b/r add best three"},
	{command_pins, COMMAND_PINS, "b/r drop best"},
	{command_replicas, COMMAND_REPLICAS, "b"},
	{command_status, COMMAND_STATUS, "b/r/x"},
	{command_keys, COMMAND_KEYS, "rm"},
	{command_keys, COMMAND_KEYS, "show K"},
	{command_publish, COMMAND_PUBLISH, "x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --format full x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --anchor sometimes x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --epoch 1 x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --wait 1 x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --rank 8/8 x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --rank 0/8 --anchor 5 x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --rank 0/8 --format trl-gap x"},
	{command_follow, COMMAND_FOLLOW, "--into x"},
	{command_follow, COMMAND_FOLLOW, "--run b/r"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --wait 3"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --replica .x"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --rank 0/65537"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --rank 1/1"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --rank 0/0"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --rank one/2"},
	{command_follow, COMMAND_FOLLOW, "--run b/r --into x --rank 0/2 --tensors b"},
	{command_ls, COMMAND_LS, X256},
	{command_rm, COMMAND_RM, "b/" X1024 "x"},
	{command_get, COMMAND_GET, "/key x"},
	{command_runs, COMMAND_RUNS, "settings b/r " X64 "=8"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --metadata " X256 "=1 x"},
	{command_publish, COMMAND_PUBLISH, "--run b/r --label " X256 "x x"},
	{command_put, COMMAND_PUT, "- b/folder/"}, /* stdin has no name */
	{command_put, COMMAND_PUT, "folder/ b"},
	{command_get, COMMAND_GET, "b"},
	{command_get, COMMAND_GET, "b/folder/ /tmp"},
	{command_get, COMMAND_GET, "b/.. /tmp"},
	{command_get, COMMAND_GET, "b/. /tmp"},
	{command_sync, COMMAND_SYNC, "b c"},
	{command_sync, COMMAND_SYNC, "./here ../there"},
};

START_TEST(misuse_asks_nothing)
{
	const struct scripted nothing[6] = {{.request = NULL}};
	struct web *const web = web_start(answer_script, (void *)nothing);
	struct command_result result = command_fixture_run(
		misuses[_i].run, misuses[_i].bit, web_endpoint(web), misuses[_i].words);
	ck_assert_int_eq(result.status, -1);
	ck_assert_msg(result.usage, "\"%s\": %s", misuses[_i].words, result.err.text);
	ck_assert_str_eq(web_trace(web), "");
	command_result_release(&result);
	web_stop(web);
}
END_TEST

Suite *test_commands_suite(void);

Suite *test_commands_suite(void)
{
	Suite *const suite = suite_create("commands");
	TCase *const tests = tcase_create("commands");
	tcase_add_loop_test(tests, a_command_asks_and_shows, 0, sizeof cases / sizeof cases[0]);
	tcase_add_loop_test(
		tests, a_refusal_is_a_failure, 0, REFUSALS * (int)(sizeof cases / sizeof cases[0]));
	tcase_add_test(tests, an_object_that_cannot_be_removed_stops_no_other);
	tcase_add_loop_test(tests, what_is_refused_is_said_with_what_helps, 0,
		sizeof refused / sizeof refused[0]);
	tcase_add_test(tests, damage_is_told_and_is_a_failure);
	tcase_add_loop_test(tests, a_failure_is_one_whatever_goes_well_behind_it, 0,
		sizeof halves / sizeof halves[0]);
	tcase_add_loop_test(tests, misuse_asks_nothing, 0, sizeof misuses / sizeof misuses[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
