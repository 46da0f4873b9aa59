/* Text forms of bytes: hex, base64, percent-encoding; and their strict inverses. Any thread. */
#ifndef BASE_ENCODE_H
#define BASE_ENCODE_H

#include "base/buffer.h"

void encode_hex(struct span bytes, char *out); /* lower case, 2*len characters and a NUL */
/* exactly 2*out_len digits, any case */
bool decode_hex(struct span text, uint8_t *out, size_t out_len);
void encode_base64(struct span bytes, struct buffer *out);
/* Strict: padded, no white space. False when malformed or longer than `capacity`. */
bool decode_base64(struct span text, uint8_t *out, size_t capacity, size_t *out_len);
/* The form for URLs: '-' and '_' in place of '+' and '/', no padding. The inverse is as strict. */
void encode_base64_url(struct span bytes, struct buffer *out);
bool decode_base64_url(struct span text, uint8_t *out, size_t capacity, size_t *out_len);
/* Percent-encodes all but A-Za-z0-9-._~ (and '/' when keep_slash); hex in upper case. */
void encode_percent(struct span bytes, bool keep_slash, struct buffer *out);
/* The same of a text that may be encoded already, in whole or in part: what decode_percent makes of
 * it, encoded. False on a malformed escape, and on a NUL, encoded or not. */
bool recode_percent(struct span text, bool plus_is_space, bool keep_slash, struct buffer *out);
/* Whether decode_percent would decode it, to something without a NUL. */
bool percent_is_valid(struct span text);
/* Decodes %XX (and '+' to space when plus_is_space). False on a malformed escape. */
bool decode_percent(struct span text, bool plus_is_space, struct buffer *out);

#endif
