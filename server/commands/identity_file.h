/* The file with the secret keys that open an encrypted backup. */
#ifndef SERVER_COMMANDS_IDENTITY_FILE_H
#define SERVER_COMMANDS_IDENTITY_FILE_H

#include "base/digest/age.h"

/* The caller wipes `out`. */
int identity_file_read(const char *path, struct age_identities *out, struct error *err);

#endif
