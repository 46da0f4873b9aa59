/* Text forms of bytes (hex, base64, percent-encoding) and their strict inverses. Any thread. */
#ifndef BASE_ENCODE_H
#define BASE_ENCODE_H

#include "base/buffer.h"

void encode_hex(struct span bytes, char *out); /* writes 2 * len lower-case digits and a NUL */
/* Accepts exactly 2 * out_len digits, in upper or lower case. */
bool decode_hex(struct span text, uint8_t *out, size_t out_len);
void encode_base64(struct span bytes, struct buffer *out);
/* Strict: padding is required and white space is refused. False when the text is malformed or its
 * bytes do not fit into `capacity`. */
bool decode_base64(struct span text, uint8_t *out, size_t capacity, size_t *out_len);
/* The form for URLs: '-' and '_' in place of '+' and '/', no padding. The inverse is as strict. */
void encode_base64_url(struct span bytes, struct buffer *out);
bool decode_base64_url(struct span text, uint8_t *out, size_t capacity, size_t *out_len);
/* Encodes all but A-Za-z0-9-._~ (and '/' with keep_slash), with upper-case hex digits. */
void encode_percent(struct span bytes, bool keep_slash, struct buffer *out);
/* The same for a text that may already be encoded, in whole or in part: decodes it as
 * decode_percent does and encodes the result. False for a malformed escape, and for a NUL, encoded
 * or not. */
bool recode_percent(struct span text, bool plus_is_space, bool keep_slash, struct buffer *out);
/* Whether decode_percent would succeed and give bytes without a NUL. */
bool percent_is_valid(struct span text);
/* Decodes %XX, and '+' to a space with plus_is_space. False for a malformed escape. */
bool decode_percent(struct span text, bool plus_is_space, struct buffer *out);

#endif
