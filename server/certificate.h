/* The server's TLS certificate: given as files, or issued by a private CA in DIR/tls (ca.pem for
 * clients, ca.key 0600) for all names of the machine. The issued certificate (the leaf) is only in
 * memory. Certificate and key are replaced together under a lock; a handshake that has begun keeps
 * the old ones. Owner of gnutls; the listener only passes certificate_callback on. */
#ifndef SERVER_CERTIFICATE_H
#define SERVER_CERTIFICATE_H

#include "base/clock.h"
#include "base/file.h"

struct certificate;

struct certificate_options {
	const char *folder;    /* DIR/tls; used when cert_file is NULL */
	const char *cert_file; /* given files; NULL with key_file: the server has a CA */
	const char *key_file;
	const char *domain; /* added with its wildcard; may be NULL */
	char *const *names; /* further DNS names and IP addresses */
	size_t name_count;
	const struct clock_source *clock;
	const struct file_ops *files; /* NULL: the real ones */
};

/* Loads the given files; or loads or makes the CA, and issues a leaf. The texts of the options must
 * outlive the certificate. */
struct certificate *certificate_open(const struct certificate_options *options, struct error *err);
/* Only after the listener has stopped. NULL is fine. */
void certificate_close(struct certificate *certificate);

/* Loads the given files again, or issues a new leaf. On failure the old certificate stays in
 * use. */
int certificate_reload(struct certificate *certificate, struct error *err);
/* True when an issued leaf ends within 30 days. */
bool certificate_is_due(const struct certificate *certificate);
const char *certificate_ca_path(const struct certificate *certificate); /* NULL for given files */
/* The CA certificate, which clients need to trust the server; NULL for given files. */
const char *certificate_ca_pem(const struct certificate *certificate);
int64_t certificate_ends_ms(const struct certificate *certificate);
/* The chain in use as PEM, for tests and people. */
struct buffer;
void certificate_print(struct certificate *certificate, struct buffer *out);

/* A gnutls_certificate_retrieve_function3 for MHD_OPTION_HTTPS_CERT_CALLBACK2, with a type that
 * needs no header of gnutls. GnuTLS passes it no argument of ours, so it serves the certificate
 * that was opened last; a process has one. */
typedef void certificate_callback_fn(void);
certificate_callback_fn *certificate_callback(void);

#endif
