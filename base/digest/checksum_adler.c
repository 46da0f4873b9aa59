#include "base/digest/checksum_adler.h"

#include <isa-l/igzip_lib.h>

uint32_t checksum_adler32(uint32_t so_far, struct span bytes)
{
	return bytes.len > 0 ? isal_adler32(so_far, bytes.data, bytes.len) : so_far;
}
