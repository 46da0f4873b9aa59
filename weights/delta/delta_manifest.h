/* SkyRL's manifest.json of a delta: which tensor lies in which file, and the checksum that it shall
 * have afterwards. docs/FORMAT.md, "SkyRL's deltas". Read-only once parsed; any thread. */
#ifndef WEIGHTS_DELTA_DELTA_MANIFEST_H
#define WEIGHTS_DELTA_DELTA_MANIFEST_H

#include "base/error.h"
#include "weights/model/json_scan.h"

struct delta_manifest;

/* `path` names the file in messages. invalid: malformed, a member missing or given twice, a
 * checksum other than xxh3-128, a payload under another name than its tensor's. Names of files are
 * not judged here, and a tensor may be given twice. */
struct delta_manifest *delta_manifest_parse(struct span json, const char *path, struct error *err);
void delta_manifest_free(struct delta_manifest *manifest); /* NULL is fine */

uint64_t delta_manifest_version(const struct delta_manifest *manifest);
uint64_t delta_manifest_base_version(const struct delta_manifest *manifest);
/* Tensor (key) to file (value), and tensor to checksum, side by side. */
size_t delta_manifest_count(const struct delta_manifest *manifest);
const struct json_scan_pair *delta_manifest_files(const struct delta_manifest *manifest);
const struct json_scan_pair *delta_manifest_checksums(const struct delta_manifest *manifest);

#endif
