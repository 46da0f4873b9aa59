/* The work that makes the file of one derived version (made_file.h). Internal to made_file. */
#ifndef STORAGE_XET_MADE_FILE_WORK_H
#define STORAGE_XET_MADE_FILE_WORK_H

#include "storage/core/store.h"
#include "storage/files/xet_file.h"
#include "storage/objects/put_body.h"
#include "storage/versions/part_ends.h"

struct made_file_work {
	struct change change; /* first */
	struct helper_job job;
	struct helper_lane lane;
	/* Set by the owner. Any thread may call the functions. */
	struct store *store;
	int64_t sequence;                                  /* of the version */
	bool (*may_continue)(struct made_file_work *work); /* asked before each slice */
	/* Reserves room for the file; returns the bytes that all works together have reserved. */
	uint64_t (*reserve)(struct made_file_work *work, uint64_t bytes);
	void (*ended)(struct made_file_work *work); /* may release and free the work */
	void *owner;
	/* valid once it has ended */
	bool failed;
	struct error error;
	/* private */
	int64_t begun_us;
	struct version version;
	struct arena *arena; /* for the version's texts */
	uint64_t reserved;   /* bytes, by all works together */
	struct part_ends ends;
	struct body_source *source;
	uint8_t *block;
	struct span untaken; /* bytes of the block that the ingest has not taken yet */
	uint64_t taken;      /* bytes of the file that the ingest has taken */
	atomic_uint resumes; /* see resume() */
	struct put_body body;
	bool fits;                     /* the last change has made enough room */
	struct xet_file_damage damage; /* that it met */
	bool is_known;                 /* the file has a row, which only must be kept longer */
};

/* Starts a work whose other fields are zero. */
void made_file_work_run(struct made_file_work *work);
/* Frees what an ended work has allocated, not the work itself. */
void made_file_work_release(struct made_file_work *work);

#endif
