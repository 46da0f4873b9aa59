/* The tables of routes as text, a line for each row: "GET,HEAD /-/health -> Health (anyone, no
 * body)". What tests say of all routes they read here, so that no route is left out. */
#ifndef TESTS_SUPPORT_ROUTE_TEXT_H
#define TESTS_SUPPORT_ROUTE_TEXT_H

#include "base/buffer.h"

enum { ROUTE_TEXT_MAX_BYTES = 256 * 1024 };

void route_text_print(struct buffer *out);

#endif
