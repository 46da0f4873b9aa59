/* GnuTLS checks the certificates here as clients do. */
#include "tests/unit/unit.h"

#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "server/certificate.h"
#include "server/data_folder.h"

#define DAY_MS INT64_C(86400000)
static const int64_t now_ms = INT64_C(1770000000000);

struct shop {
	char *folder;
	struct clock_fake clock;
	struct certificate_options options;
};

static void open_shop(struct shop *shop)
{
	static char *names[] = {"bucket.internal", "10.9.8.7"};
	shop->folder = unit_scratch_make();
	clock_fake_init(&shop->clock, now_ms);
	shop->options = (struct certificate_options){.folder = shop->folder,
		.domain = "example.org",
		.names = names,
		.name_count = 2,
		.clock = &shop->clock.source};
}

static struct certificate *open_certificate(const struct shop *shop)
{
	struct error err = {0};
	struct certificate *const certificate = certificate_open(&shop->options, &err);
	ck_assert_msg(certificate != NULL, "%s", err.text);
	return certificate;
}

static gnutls_x509_crt_t load_pem(const struct buffer *pem)
{
	gnutls_x509_crt_t crt;
	const gnutls_datum_t datum = {pem->data, (unsigned)pem->len};
	ck_assert_int_eq(gnutls_x509_crt_init(&crt), 0);
	ck_assert_int_eq(gnutls_x509_crt_import(crt, &datum, GNUTLS_X509_FMT_PEM), 0);
	return crt;
}

static gnutls_x509_crt_t leaf_of(struct certificate *certificate)
{
	struct buffer pem;
	buffer_init(&pem, 100000);
	certificate_print(certificate, &pem);
	const gnutls_x509_crt_t crt = load_pem(&pem);
	buffer_release(&pem);
	return crt;
}

static gnutls_x509_crt_t ca_of(const struct certificate *certificate)
{
	struct error err = {0};
	struct buffer pem;
	buffer_init(&pem, 100000);
	ck_assert_int_eq(file_read_all(certificate_ca_path(certificate), &pem, &err), 0);
	const gnutls_x509_crt_t crt = load_pem(&pem);
	buffer_release(&pem);
	return crt;
}

static const struct {
	const char *name;
	bool covered;
} hosts[] = {{"localhost", true}, {"example.org", true}, {"models.example.org", true},
	{"a.b.example.org", false}, {"bucket.internal", true}, {"other.internal", false},
	{"127.0.0.1", true}, {"::1", true}, {"10.9.8.7", true}, {"10.9.8.8", false}};

START_TEST(the_leaf_covers_its_names_and_no_others)
{
	struct shop shop;
	open_shop(&shop);
	struct certificate *const certificate = open_certificate(&shop);
	const gnutls_x509_crt_t leaf = leaf_of(certificate);
	ck_assert_int_eq(
		gnutls_x509_crt_check_hostname(leaf, hosts[_i].name) != 0, hosts[_i].covered);
	gnutls_x509_crt_deinit(leaf);
	certificate_close(certificate);
	unit_scratch_remove(shop.folder);
}
END_TEST

START_TEST(the_leaf_is_signed_by_the_ca_and_is_none)
{
	struct shop shop;
	unsigned verdict = 1;
	open_shop(&shop);
	struct certificate *const certificate = open_certificate(&shop);
	gnutls_x509_crt_t leaf = leaf_of(certificate);
	gnutls_x509_crt_t ca = ca_of(certificate);
	ck_assert_int_eq(gnutls_x509_crt_list_verify(&leaf, 1, &ca, 1, NULL, 0,
				 GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &verdict),
		0);
	ck_assert_uint_eq(verdict, 0);
	ck_assert_int_eq(gnutls_x509_crt_get_ca_status(leaf, NULL), 0);
	ck_assert_int_eq(gnutls_x509_crt_get_ca_status(ca, NULL), 1);
	gnutls_x509_crt_deinit(leaf);
	gnutls_x509_crt_deinit(ca);
	certificate_close(certificate);
	unit_scratch_remove(shop.folder);
}
END_TEST

START_TEST(the_ca_stays_and_the_leaf_is_new_at_every_start)
{
	struct shop shop;
	unsigned verdict = 1;
	open_shop(&shop);
	struct certificate *certificate = open_certificate(&shop);
	gnutls_x509_crt_t ca = ca_of(certificate);
	gnutls_x509_crt_t first = leaf_of(certificate);
	certificate_close(certificate);
	certificate = open_certificate(&shop);
	gnutls_x509_crt_t second = leaf_of(certificate);
	ck_assert(!gnutls_x509_crt_equals(first, second));
	ck_assert_int_eq(gnutls_x509_crt_list_verify(&second, 1, &ca, 1, NULL, 0,
				 GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &verdict),
		0);
	ck_assert_uint_eq(verdict, 0);
	gnutls_x509_crt_deinit(first);
	gnutls_x509_crt_deinit(second);
	gnutls_x509_crt_deinit(ca);
	certificate_close(certificate);
	unit_scratch_remove(shop.folder);
}
END_TEST

/* A file of the CA with one changed bit is refused by its name, unless the bit has no meaning. */
static void expect_named_or_good(const struct shop *shop, const char *path, gnutls_x509_crt_t ca)
{
	struct error err = {0};
	unsigned verdict = 1;
	struct certificate *const certificate = certificate_open(&shop->options, &err);
	if (certificate == NULL) {
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		ck_assert_msg(strstr(err.text, path) == err.text, "%s", err.text);
		return;
	}
	gnutls_x509_crt_t leaf = leaf_of(certificate);
	ck_assert_int_eq(gnutls_x509_crt_list_verify(&leaf, 1, &ca, 1, NULL, 0,
				 GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &verdict),
		0);
	ck_assert_uint_eq(verdict, 0);
	gnutls_x509_crt_deinit(leaf);
	certificate_close(certificate);
}

START_TEST(a_flipped_bit_of_the_ca_is_named)
{
	static const char *const names[] = {"ca.pem", "ca.key"};
	struct shop shop;
	struct error err = {0};
	struct buffer pem;
	open_shop(&shop);
	struct certificate *const made = open_certificate(&shop);
	gnutls_x509_crt_t ca = ca_of(made);
	certificate_close(made);
	char *const path = data_folder_path(shop.folder, names[_i]);
	buffer_init(&pem, 100000);
	ck_assert_int_eq(file_read_all(path, &pem, &err), 0);
	for (size_t bit = 0; bit < pem.len * 8; bit += 5) {
		pem.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_eq(
			file_publish(file_system(), path, buffer_span(&pem), 0600, &err), 0);
		expect_named_or_good(&shop, path, ca);
		pem.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	buffer_release(&pem);
	free(path);
	gnutls_x509_crt_deinit(ca);
	unit_scratch_remove(shop.folder);
}
END_TEST

START_TEST(the_ca_key_is_private)
{
	struct shop shop;
	struct stat facts;
	open_shop(&shop);
	struct certificate *const certificate = open_certificate(&shop);
	char *const key = data_folder_path(shop.folder, "ca.key");
	ck_assert_int_eq(stat(key, &facts), 0);
	ck_assert_uint_eq(facts.st_mode & 07777, 0600);
	free(key);
	certificate_close(certificate);
	unit_scratch_remove(shop.folder);
}
END_TEST

START_TEST(a_leaf_is_due_thirty_days_before_its_end)
{
	struct shop shop;
	struct error err = {0};
	open_shop(&shop);
	struct certificate *const certificate = open_certificate(&shop);
	const int64_t ends_ms = certificate_ends_ms(certificate);
	ck_assert_int_gt(ends_ms, now_ms + 60 * DAY_MS);
	ck_assert(!certificate_is_due(certificate));
	shop.clock.now_ms = ends_ms - 31 * DAY_MS;
	ck_assert(!certificate_is_due(certificate));
	shop.clock.now_ms = ends_ms - 29 * DAY_MS;
	ck_assert(certificate_is_due(certificate));
	ck_assert_int_eq(certificate_reload(certificate, &err), 0);
	ck_assert(!certificate_is_due(certificate));
	ck_assert_int_gt(certificate_ends_ms(certificate), ends_ms);
	certificate_close(certificate);
	unit_scratch_remove(shop.folder);
}
END_TEST

/* A pair of files from an operator. Here they are those of the CA. */
static void give_files(struct shop *shop, const struct shop *maker, char **out_cert, char **out_key)
{
	certificate_close(open_certificate(maker));
	*out_cert = data_folder_path(maker->folder, "ca.pem");
	*out_key = data_folder_path(maker->folder, "ca.key");
	shop->options.cert_file = *out_cert;
	shop->options.key_file = *out_key;
}

START_TEST(given_files_are_used_and_reloaded)
{
	struct shop shop;
	struct shop maker;
	struct error err = {0};
	char *cert;
	char *key;
	open_shop(&shop);
	open_shop(&maker);
	give_files(&shop, &maker, &cert, &key);
	struct certificate *const certificate = open_certificate(&shop);
	ck_assert_ptr_null(certificate_ca_path(certificate));
	ck_assert(!certificate_is_due(certificate));
	ck_assert_int_eq(certificate_reload(certificate, &err), 0);
	const int64_t ends_ms = certificate_ends_ms(certificate);
	ck_assert_int_eq(file_publish(file_system(), cert, span_text("garbage"), 0600, &err), 0);
	ck_assert_int_eq(certificate_reload(certificate, &err), -1);
	ck_assert_int_eq(certificate_ends_ms(certificate), ends_ms); /* the old one stays in use */
	certificate_close(certificate);
	free(cert);
	free(key);
	unit_scratch_remove(shop.folder);
	unit_scratch_remove(maker.folder);
}
END_TEST

START_TEST(a_key_of_another_certificate_is_refused)
{
	struct shop shop;
	struct shop maker;
	struct shop stranger;
	struct error err = {0};
	char *cert;
	char *key;
	open_shop(&shop);
	open_shop(&maker);
	open_shop(&stranger);
	give_files(&shop, &maker, &cert, &key);
	certificate_close(open_certificate(&stranger));
	char *const other = data_folder_path(stranger.folder, "ca.key");
	shop.options.key_file = other;
	ck_assert_ptr_null(certificate_open(&shop.options, &err));
	ck_assert_msg(strstr(err.text, other) != NULL, "%s", err.text);
	free(other);
	free(cert);
	free(key);
	unit_scratch_remove(shop.folder);
	unit_scratch_remove(maker.folder);
	unit_scratch_remove(stranger.folder);
}
END_TEST

START_TEST(absent_files_are_named)
{
	struct shop shop;
	struct error err = {0};
	open_shop(&shop);
	shop.options.cert_file = "/nonexistent/cert.pem";
	shop.options.key_file = "/nonexistent/key.pem";
	ck_assert_ptr_null(certificate_open(&shop.options, &err));
	ck_assert_msg(strstr(err.text, "/nonexistent/cert.pem") != NULL, "%s", err.text);
	unit_scratch_remove(shop.folder);
}
END_TEST

Suite *test_certificate_suite(void);

Suite *test_certificate_suite(void)
{
	Suite *const suite = suite_create("certificate");
	TCase *const tcase = tcase_create("certificate");
	tcase_add_loop_test(
		tcase, the_leaf_covers_its_names_and_no_others, 0, sizeof hosts / sizeof hosts[0]);
	tcase_add_test(tcase, the_leaf_is_signed_by_the_ca_and_is_none);
	tcase_add_test(tcase, the_ca_stays_and_the_leaf_is_new_at_every_start);
	tcase_add_loop_test(tcase, a_flipped_bit_of_the_ca_is_named, 0, 2);
	tcase_add_test(tcase, the_ca_key_is_private);
	tcase_add_test(tcase, a_leaf_is_due_thirty_days_before_its_end);
	tcase_add_test(tcase, given_files_are_used_and_reloaded);
	tcase_add_test(tcase, a_key_of_another_certificate_is_refused);
	tcase_add_test(tcase, absent_files_are_named);
	suite_add_tcase(suite, tcase);
	return suite;
}
