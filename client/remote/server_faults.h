/* The faults that a server knows of itself: the lines of GET /-/ready behind the first
 * ("read-only: ...", "full: ..."). docs/protocol/admin.md, "Ready", lists them. */
#ifndef CLIENT_REMOTE_SERVER_FAULTS_H
#define CLIENT_REMOTE_SERVER_FAULTS_H

#include "base/buffer.h"

struct json_writer;

/* Sets *out to the lines behind the first of a reply to GET /-/ready; it borrows the reply. */
void server_faults_of(struct span reply, struct span *out);
/* Takes the next line off the front of *faults; false when there is none left. */
bool server_faults_next(struct span *faults, struct span *out_line);
/* Adds the lines as the array `name`. */
void server_faults_print(struct span faults, const char *name, struct json_writer *writer);

#endif
