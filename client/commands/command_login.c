/* `login` and `logout`. A server with a CA of its own hands it out over a connection that proves
 * nothing. So the CA counts only if its fingerprint is the one that the server printed: given as
 * --fingerprint, or shown to a person, who confirms it. The token is sent only after that. Nothing
 * is stored until the server has accepted the token. */
#include "client/commands/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/fingerprint.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/remote/remote_json.h"
#include "client/terminal/profile.h"
#include "client/terminal/terminal.h"

enum {
	TOKEN_MAX_BYTES = 1024,
	PATH_MAX_BYTES = 8192,
	PEM_MAX_BYTES = 4 * 1024 * 1024,
	ANSWER_MAX_BYTES = 16
};

struct login {
	struct session *session;
	const char *name; /* of the profile; NULL: default */
	char *config;     /* path of the config file */
	char *endpoint;
	struct buffer ca; /* PEM; empty: the system's CAs */
	struct buffer token;
	char *ca_path;
	char *account;
};

static int log_in(struct login *login, struct error *err);
static int find_profile(
	struct session *session, const char **out_name, char **out_config, struct error *err);
static int read_endpoint(struct login *login, struct error *err);
static int find_ca(struct login *login, struct error *err);
static bool is_https(const struct login *login);
static int accept_plain(struct login *login, struct error *err);
static int read_ca(struct login *login, const char *path, struct error *err);
static int is_trusted(struct login *login, struct error *err);
static int fetch_ca(struct login *login, struct error *err);
static int check_ca(struct login *login, struct error *err);
static int say_fingerprint(const struct login *login, struct fingerprint *out,
	char text[FINGERPRINT_TEXT_BYTES], struct error *err);
static int confirm(struct login *login, const char *text, struct error *err);
static int read_token(struct login *login, struct error *err);
static int prove(struct login *login, struct error *err);
static int ask_who(struct login *login, const char *ca_path, struct error *err);
static int explain_proof(const struct login *login, struct error *err);
static bool is_unsigned(const struct error *err);
static char *make_ca_path(const struct login *login, const char *suffix);
static int store(struct login *login, struct error *err);
static void say(const struct login *login);
static void remove_ca(struct session *session, const char *config, const char *name);

int command_login(struct session *session, struct error *err)
{
	struct login login = {.session = session};
	buffer_init(&login.ca, PEM_MAX_BYTES);
	buffer_init(&login.token, TOKEN_MAX_BYTES);
	const int result = log_in(&login, err);
	if (result == 0)
		say(&login);
	if (login.token.data != NULL)
		explicit_bzero(login.token.data, login.token.len);
	buffer_release(&login.token);
	buffer_release(&login.ca);
	free(login.ca_path);
	free(login.account);
	free(login.endpoint);
	free(login.config);
	return result;
}

int command_logout(struct session *session, struct error *err)
{
	const char *name;
	char *config = NULL;
	int result = find_profile(session, &name, &config, err);
	if (result == 0)
		result = profile_remove(session->files, config, name, err);
	if (result == 0)
		result = error_set(err, ERROR_NOT_FOUND,
			"there is nothing to log out of: %s has no profile %s", config,
			name != NULL ? name : "default");
	if (result > 0) {
		struct output_line line;
		remove_ca(session, config, name);
		output_line_begin(&line, &session->output, "logged_out");
		json_writer_text(
			&line.writer, "profile", span_text(name != NULL ? name : "default"));
		output_line_end(&line);
		output_say(&session->output,
			"logged out: %s does not hold the token of the profile %s any more; the "
			"server still accepts it until the key is revoked",
			config, name != NULL ? name : "default");
	}
	free(config);
	return result > 0 ? 0 : -1;
}

static int log_in(struct login *login, struct error *err)
{
	if (find_profile(login->session, &login->name, &login->config, err) != 0 ||
		read_endpoint(login, err) != 0 || find_ca(login, err) != 0)
		return -1;
	if (read_token(login, err) != 0)
		return -1;
	return prove(login, err) == 0 ? store(login, err) : -1;
}

static int find_profile(
	struct session *session, const char **out_name, char **out_config, struct error *err)
{
	*out_name = options_profile(session->options);
	*out_config = options_config_path();
	if (*out_config == NULL)
		return error_set(err, ERROR_INVALID,
			"there is no home folder for the config file: set HOME or XDG_CONFIG_HOME");
	if (*out_name == NULL || profile_check_name(*out_name, err) == 0)
		return 0;
	session->usage = true;
	return -1;
}

static int read_endpoint(struct login *login, struct error *err)
{
	ASSERT(login->session->options->argument_count == 1);
	const char *const given = login->session->options->arguments[0];
	if (options_check_endpoint(given, err) != 0) {
		login->session->usage = true;
		return -1;
	}
	login->endpoint = memory_copy_text(given);
	for (size_t len = strlen(login->endpoint); login->endpoint[len - 1] == '/'; len--)
		login->endpoint[len - 1] = '\0';
	return 0;
}

static int find_ca(struct login *login, struct error *err)
{
	const struct options *const options = login->session->options;
	if (!is_https(login))
		return accept_plain(login, err);
	if (options->ca != NULL && options->fingerprint != NULL)
		return session_usage(login->session, err,
			"give either --ca with a file that holds the CA, or --fingerprint with the "
			"fingerprint of the CA to fetch");
	if (options->ca != NULL)
		return read_ca(login, options->ca, err);
	if (options->fingerprint == NULL) {
		const int trusted = is_trusted(login, err);
		if (trusted != 0)
			return trusted > 0 ? 0 : -1;
	}
	return fetch_ca(login, err) == 0 ? check_ca(login, err) : -1;
}

static bool is_https(const struct login *login)
{
	return strncmp(login->endpoint, "https://", 8) == 0;
}

/* Accepts a plain HTTP endpoint, unless the user names a CA or a fingerprint: then the token must
 * not go where nothing can prove the server. */
static int accept_plain(struct login *login, struct error *err)
{
	const struct options *const options = login->session->options;
	if (options->fingerprint != NULL || options->ca != NULL)
		return session_usage(login->session, err,
			"%s goes with an endpoint https://...: %s is plain HTTP, where nothing "
			"proves who answers. Nothing was sent or stored",
			options->fingerprint != NULL ? "--fingerprint" : "--ca", login->endpoint);
	output_note(&login->session->output,
		"the endpoint is plain HTTP: the token goes over the network unencrypted");
	return 0;
}

static int read_ca(struct login *login, const char *path, struct error *err)
{
	struct fingerprint ignored;
	if (file_read_all(path, &login->ca, err) != 0)
		return error_wrap(err, "--ca wants a PEM file with the server's CA, up to %d MiB",
			PEM_MAX_BYTES / (1024 * 1024));
	return fingerprint_of_pem(buffer_span(&login->ca), &ignored)
		? 0
		: session_usage(login->session, err,
			  "--ca %s holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)",
			  path);
}

/* 1 when the system's CAs prove the server, 0 when they do not. The request has no token, and any
 * answer will do. */
static int is_trusted(struct login *login, struct error *err)
{
	const struct http_client_options options = {.endpoint = login->endpoint};
	const struct http_request request = {.method = "GET", .target = "/-/ready"};
	struct http_response response = {0};
	struct http_client *const client = http_client_new(&options, err);
	if (client == NULL)
		return -1;
	const int result = http_client_send(client, &request, &response, err);
	http_response_release(&response);
	http_client_free(client);
	if (result == 0)
		return 1;
	return err->kind == ERROR_UNTRUSTED ? 0 : -1;
}

/* Fetches the CA from the server without verifying who answers. */
static int fetch_ca(struct login *login, struct error *err)
{
	ASSERT(login->ca.len == 0);
	const struct http_client_options options = {
		.endpoint = login->endpoint, .unverified = true};
	const struct http_request request = {.method = "GET", .target = "/-/ca"};
	struct http_response response = {0};
	struct http_client *const client = http_client_new(&options, err);
	int result = client == NULL ? -1 : http_client_send(client, &request, &response, err);
	if (result == 0 && response.status != 200)
		result = error_set(err, ERROR_UNTRUSTED,
			"%s has no certificate that is trusted here, and gives no CA of its own "
			"(status %d); --ca FILE names the CA",
			login->endpoint, response.status);
	if (result == 0)
		buffer_add_span(&login->ca, buffer_span(&response.body));
	if (client != NULL)
		http_response_release(&response);
	http_client_free(client);
	return result == 0 ? buffer_check(&login->ca, "the CA certificate", err) : -1;
}

static int check_ca(struct login *login, struct error *err)
{
	const char *const given = login->session->options->fingerprint;
	struct fingerprint found;
	struct fingerprint wanted;
	char text[FINGERPRINT_TEXT_BYTES];
	if (say_fingerprint(login, &found, text, err) != 0)
		return -1;
	if (given == NULL)
		return confirm(login, text, err);
	if (!fingerprint_parse(span_text(given), &wanted))
		return session_usage(login->session, err,
			"--fingerprint wants sha256: and 64 digits, not \"%.100s\"", given);
	if (fingerprint_equal(&found, &wanted))
		return 0;
	return error_set(err, ERROR_UNTRUSTED,
		"the CA of %s has the fingerprint %s, not the given one: another server may be "
		"answering in its place. Nothing was sent or stored",
		login->endpoint, text);
}

static int say_fingerprint(const struct login *login, struct fingerprint *out,
	char text[FINGERPRINT_TEXT_BYTES], struct error *err)
{
	if (!fingerprint_of_pem(buffer_span(&login->ca), out))
		return error_set(err, ERROR_UPSTREAM,
			"%s gives something other than a CA certificate; --ca FILE names one",
			login->endpoint);
	fingerprint_format(out, text);
	return 0;
}

static int confirm(struct login *login, const char *text, struct error *err)
{
	struct buffer answer;
	char prompt[512];
	if (!terminal_is_there())
		return session_usage(login->session, err,
			"say which CA the server has: --fingerprint sha256:..., as deltabucketd "
			"prints it when it starts, or --ca FILE");
	snprintf(prompt, sizeof(prompt),
		"The server at %.200s has a CA of its own, with the fingerprint\n  %s\n"
		"Is it the one that deltabucketd printed when it started? (yes/no) ",
		login->endpoint, text);
	buffer_init(&answer, ANSWER_MAX_BYTES);
	const int result = terminal_read_line(prompt, false, &answer, err);
	const bool yes = result == 0 && strcmp(buffer_text(&answer), "yes") == 0;
	buffer_release(&answer);
	return yes ? 0
		   : error_set(err, ERROR_UNTRUSTED,
			     "the CA was not confirmed: nothing was sent or stored");
}

static int read_token(struct login *login, struct error *err)
{
	struct error failure = {0};
	if (terminal_read_line("Token: ", true, &login->token, &failure) == 0)
		return 0;
	*err = failure;
	if (failure.kind == ERROR_INVALID)
		return session_usage(login->session, err,
			"the token: %s; `deltabucket login ENDPOINT < FILE` reads it from a file",
			failure.text);
	return error_wrap(err, "the token");
}

/* Proves server and token with a request. The CA is in a temporary file meanwhile. */
static int prove(struct login *login, struct error *err)
{
	const struct file_ops *const files = login->session->files;
	if (login->ca.len == 0)
		return ask_who(login, NULL, err);
	char *const path = make_ca_path(login, ".new");
	int result = file_make_parent(files, path, 0755, err);
	if (result == 0)
		result = file_place(files, path, buffer_span(&login->ca), 0600, err);
	if (result == 0)
		result = ask_who(login, path, err);
	files->unlink(files, path);
	free(path);
	return result;
}

static int ask_who(struct login *login, const char *ca_path, struct error *err)
{
	struct session *const session = login->session;
	struct json_node *answer = NULL;
	struct span name = {0};
	const struct remote_options options = {.endpoint = login->endpoint,
		.token = buffer_text(&login->token),
		.ca = ca_path,
		.output = &session->output};
	const struct remote_json_request request = {.method = "GET", .target = "/api/whoami-v2"};
	struct remote *const remote = remote_new(&options, err);
	int result = remote == NULL ? -1 : remote_json_send(remote, &request, &answer, err);
	if (result != 0 && remote != NULL)
		explain_proof(login, err);
	if (result == 0 && !json_node_text(json_node_member(answer, "name"), &name))
		result = error_set(
			err, ERROR_UPSTREAM, "%s is not a deltabucket server", login->endpoint);
	if (result == 0) {
		login->account = memory_new(name.len + 1);
		memcpy(login->account, name.data, name.len);
	}
	json_node_free(answer);
	remote_free(remote);
	return result;
}

/* Says whether the server was not proven or the token was refused. TLS names the file that the CA
 * is in meanwhile, which the user does not know. */
static int explain_proof(const struct login *login, struct error *err)
{
	const char *const given = login->session->options->ca;
	if (err->kind == ERROR_UPSTREAM)
		return -1;
	if (err->kind != ERROR_UNTRUSTED)
		return error_wrap(err, "%s does not take the token", login->endpoint);
	if (login->ca.len == 0 || !is_unsigned(err))
		return -1;
	return error_set(err, ERROR_UNTRUSTED,
		"the certificate of %s is not signed by the CA %s%s. Nothing was sent or stored",
		login->endpoint, given != NULL ? "in " : "that it gives",
		given != NULL ? given : "");
}

/* A certificate may be signed, and yet be for another host or another time. */
static bool is_unsigned(const struct error *err)
{
	static const char *const others[] = {"subject name", "expir", "activat", "not yet valid"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strstr(err->text, others[i]) != NULL)
			return false;
	return true;
}

/* The path of the CA, beside the config file. A CA that is not proven yet has a suffix. */
static char *make_ca_path(const struct login *login, const char *suffix)
{
	struct buffer path;
	const char *const slash = strrchr(login->config, '/');
	ASSERT(slash != NULL);
	buffer_init(&path, PATH_MAX_BYTES);
	buffer_format(&path, "%.*s/%s.ca.pem%s", (int)(slash - login->config), login->config,
		login->name != NULL ? login->name : "default", suffix);
	char *const text = memory_copy_text(buffer_text(&path));
	buffer_release(&path);
	return text;
}

static int store(struct login *login, struct error *err)
{
	const struct file_ops *const files = login->session->files;
	struct profile profile = {.endpoint = login->endpoint,
		.token = (char *)(uintptr_t)buffer_text(&login->token)};
	if (login->ca.len > 0) {
		login->ca_path = make_ca_path(login, "");
		profile.ca = login->ca_path;
		if (file_publish(files, login->ca_path, buffer_span(&login->ca), 0600, err) != 0)
			return -1;
	}
	return profile_write(files, login->config, login->name, &profile, err);
}

static void say(const struct login *login)
{
	struct output *const output = &login->session->output;
	struct output_line line;
	ASSERT(login->account != NULL);
	output_line_begin(&line, output, "logged_in");
	json_writer_text(&line.writer, "endpoint", span_text(login->endpoint));
	json_writer_text(&line.writer, "namespace", span_text(login->account));
	json_writer_text(
		&line.writer, "profile", span_text(login->name != NULL ? login->name : "default"));
	json_writer_text(&line.writer, "config", span_text(login->config));
	output_line_end(&line);
	output_say(output, "logged in to %s as %s; %s has endpoint%s and token%s%s",
		login->endpoint, login->account, login->config, login->ca.len > 0 ? ", CA" : "",
		login->name != NULL ? " in the profile " : "",
		login->name != NULL ? login->name : "");
}

/* Removes the CA that login stored. A CA with another path is the user's own and stays. */
static void remove_ca(struct session *session, const char *config, const char *name)
{
	const struct login place = {.config = (char *)(uintptr_t)config, .name = name};
	char *const path = make_ca_path(&place, "");
	(void)session->files->unlink(session->files, path);
	free(path);
}
