/* The server's TLS certificate: given as files, or issued by a private CA in DIR/tls (ca.pem for
 * clients, ca.key 0600) for as many names as the machine has. A leaf lives in memory only. Swapped
 * whole under a lock, so that handshakes under way keep the one they began with. The one home of
 * gnutls; the listener passes certificate_callback on as it is. */
#ifndef SERVER_CERTIFICATE_H
#define SERVER_CERTIFICATE_H

#include "base/clock.h"
#include "base/file.h"

struct certificate;

struct certificate_options {
	const char *folder;    /* DIR/tls; used when cert_file is NULL */
	const char *cert_file; /* with key_file: given ones */
	const char *key_file;
	const char *domain; /* and its wildcard; may be NULL */
	char *const *names; /* further DNS names and IP addresses */
	size_t name_count;
	const struct clock_source *clock;
	const struct file_ops *files; /* NULL: the real ones */
};

/* Loads the given files, or loads or makes the CA and issues a leaf. Texts in the options must
 * outlive the certificate. */
struct certificate *certificate_open(const struct certificate_options *options, struct error *err);
/* after the listener has stopped; NULL is fine */
void certificate_close(struct certificate *certificate);

/* The given files again, or a fresh leaf. On failure the old one stays in use. */
int certificate_reload(struct certificate *certificate, struct error *err);
/* True when an issued leaf ends within 30 days. */
bool certificate_is_due(const struct certificate *certificate);
const char *certificate_ca_path(const struct certificate *certificate); /* NULL for given files */
/* what clients need to trust the server; NULL for given files */
const char *certificate_ca_pem(const struct certificate *certificate);
int64_t certificate_ends_ms(const struct certificate *certificate);
/* The chain in use as PEM, for tests and people. */
struct buffer;
void certificate_print(struct certificate *certificate, struct buffer *out);

/* A gnutls_certificate_retrieve_function3 for MHD_OPTION_HTTPS_CERT_CALLBACK2, as an anonymous
 * function type. GnuTLS gives it no argument of ours, so it serves the certificate opened last;
 * there is one per process. */
typedef void certificate_callback_fn(void);
certificate_callback_fn *certificate_callback(void);

#endif
