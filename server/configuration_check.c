#include "server/configuration_check.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "server/certificate.h"
#include "server/data_folder.h"
#include "server/packs_place.h"

static int check_data(const struct configuration *configuration, struct error *err);
static int check_parent(const char *data, struct error *err);
static int check_master_key(const struct configuration *configuration, struct error *err);
static int check_certificate(const struct configuration *configuration, struct error *err);

const struct configuration_check configuration_checks[] = {
	{"data", check_data},
	{"master_key", check_master_key},
	{"tls_cert", check_certificate},
	{"packs", packs_place_check},
};
const size_t configuration_check_count =
	sizeof(configuration_checks) / sizeof(configuration_checks[0]);

static int check_data(const struct configuration *configuration, struct error *err)
{
	const char *const data = configuration->data;
	if (data == NULL)
		return 0;
	if (!file_exists(data))
		return check_parent(data, err);
	if (data_folder_need(data, err) != 0)
		return -1;
	if (access(data, R_OK | W_OK | X_OK) != 0)
		return error_set_errno(err, "the folder %s must be the server's to write to", data);
	return data_folder_check_new(data, configuration->settings_file, err);
}

/* The start makes the data folder, but not the one around it. */
static int check_parent(const char *data, struct error *err)
{
	char *const path = memory_copy_text(data);
	const char *const parent = dirname(path);
	int outcome = 0;
	if (!file_exists(parent))
		outcome = error_set(err, ERROR_INVALID,
			"the folder %s is not there, and neither is %s, in which the server would make it",
			data, parent);
	else if (access(parent, W_OK | X_OK) != 0)
		outcome = error_set_errno(err,
			"the folder %s is not there, and the server could not make it in %s", data,
			parent);
	free(path);
	return outcome;
}

/* A key that is not there is made, but not for a store that is there. */
static int check_master_key(const struct configuration *configuration, struct error *err)
{
	uint8_t key[MASTER_KEY_BYTES];
	struct error ignored = {0};
	if (configuration->master_key == NULL)
		return 0;
	if (!file_exists(configuration->master_key) &&
		(configuration->data == NULL ||
			data_folder_need_store(configuration->data, &ignored) != 0))
		return 0;
	const int outcome = data_folder_read_key(configuration->master_key, key, err);
	explicit_bzero(key, sizeof(key));
	return outcome;
}

static int check_certificate(const struct configuration *configuration, struct error *err)
{
	const struct certificate_options options = {.cert_file = configuration->tls_cert,
		.key_file = configuration->tls_key,
		.clock = clock_system()};
	if (options.cert_file == NULL || options.key_file == NULL || configuration->http ||
		access(options.cert_file, R_OK) != 0 || access(options.key_file, R_OK) != 0)
		return 0;
	struct certificate *const certificate = certificate_open(&options, err);
	if (certificate == NULL)
		return -1;
	const int64_t ends_ms = certificate_ends_ms(certificate);
	certificate_close(certificate);
	if (ends_ms > options.clock->wall_ms(options.clock))
		return 0;
	return error_set(err, ERROR_INVALID, "the certificate in %s has ended; renew it",
		configuration->tls_cert);
}
