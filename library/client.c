#include "library/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/remote/spare_clients.h"
#include "client/terminal/options.h"
#include "library/call.h"
#include "library/sized.h"

enum { RETRIES = 4 };

static struct deltabucket_client *make(
	const struct deltabucket_client_settings *settings, struct error *err);
static struct deltabucket_client *from_options(
	const struct options *options, const struct deltabucket_client_settings *settings);
static int check(const struct deltabucket_client *client, struct error *err);

struct deltabucket_client *deltabucket_client_new(
	const struct deltabucket_client_settings *settings, struct deltabucket_error *err)
{
	struct deltabucket_client_settings taken = DELTABUCKET_CLIENT_SETTINGS;
	struct deltabucket_client *client = NULL;
	struct error failure = {0};
	if (settings == NULL ||
		sized_take(&taken, sizeof(taken), settings, "deltabucket_client_settings",
			&failure) == 0)
		client = make(&taken, &failure);
	if (client != NULL && check(client, &failure) != 0) {
		deltabucket_client_free(client);
		client = NULL;
	}
	if (client == NULL)
		library_error_give(&failure, err);
	return client;
}

void deltabucket_client_free(struct deltabucket_client *client)
{
	if (client == NULL)
		return;
	if (client->token != NULL)
		explicit_bzero(client->token, strlen(client->token));
	spare_clients_free(client->spares);
	free(client->token);
	free(client->ca);
	free(client->endpoint);
	free(client);
}

const char *deltabucket_client_endpoint(const struct deltabucket_client *client)
{
	return client->endpoint;
}

/* The settings stand for the flags of the command line, whose rule this is. */
static struct deltabucket_client *make(
	const struct deltabucket_client_settings *settings, struct error *err)
{
	struct deltabucket_client *client = NULL;
	struct options options = {
		.endpoint = settings->endpoint,
		.token = settings->token,
		.ca = settings->ca,
		.profile = settings->profile,
	};
	char *const config = options_config_path();
	const int result = options_complete(&options, config, err);
	if (result == 0 && options.endpoint == NULL)
		error_set(err, ERROR_INVALID,
			"there is no endpoint: neither the settings, nor DELTABUCKET_ENDPOINT, nor a "
			"config file, which `deltabucket login ENDPOINT` writes, say which server");
	else if (result == 0 && settings->reserved != 0)
		error_set(err, ERROR_UNSUPPORTED,
			"struct deltabucket_client_settings sets its reserved member; it must be 0");
	else if (result == 0)
		client = from_options(&options, settings);
	free(config);
	options_release(&options);
	return client;
}

static struct deltabucket_client *from_options(
	const struct options *options, const struct deltabucket_client_settings *settings)
{
	struct deltabucket_client *const client = memory_new(sizeof(*client));
	client->endpoint = memory_copy_text(options->endpoint);
	client->token = memory_copy_text(options->token);
	client->ca = memory_copy_text(options->ca);
	client->spares = spare_clients_new();
	client->parallel = settings->parallel;
	client->threads = settings->threads;
	if (settings->retries == 0)
		client->retries = RETRIES;
	else if (settings->retries > 0)
		client->retries = (unsigned)settings->retries;
	return client;
}

/* What a connection would refuse is refused at once; this one is not opened yet. */
static int check(const struct deltabucket_client *client, struct error *err)
{
	struct library_call call;
	library_call_begin(&call, client, NULL);
	struct remote *const remote = session_connect(&call.session, err);
	remote_free(remote);
	return remote == NULL ? -1 : 0;
}
