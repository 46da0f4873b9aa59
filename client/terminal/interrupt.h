/* Turns SIGINT and SIGTERM into an orderly stop: the first signal gives its number to the `stop`. A
 * further signal, half a second or more after the first, ends the process at once. Start one per
 * process, before any other thread. */
#ifndef CLIENT_TERMINAL_INTERRUPT_H
#define CLIENT_TERMINAL_INTERRUPT_H

#include "client/work/stop.h"

struct interrupt;

/* `stop` is borrowed until interrupt_end. */
struct interrupt *interrupt_start(struct stop *stop);
void interrupt_end(struct interrupt *interrupt); /* NULL is fine */

#endif
