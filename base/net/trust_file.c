#include "base/net/trust_file.h"

#include <stddef.h>
#include <unistd.h>

const char *const TRUST_FILE_PLACES[] = {
	"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
	"/etc/pki/tls/certs/ca-bundle.crt",                  /* Amazon Linux, older RHEL */
	"/var/lib/ca-certificates/ca-bundle.pem",            /* openSUSE, SLES */
	"/etc/ssl/ca-bundle.pem",                            /* older openSUSE */
	"/etc/ssl/cert.pem",                                 /* what OpenSSL itself looks for */
	NULL,
};

const char *trust_file_instead(const char *own, const char *const places[])
{
	if (own == NULL || access(own, R_OK) == 0)
		return NULL;
	while (*places != NULL && access(*places, R_OK) != 0)
		places++;
	return *places;
}
