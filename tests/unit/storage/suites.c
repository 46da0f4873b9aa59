#include "tests/unit/unit.h"

unit_suite_fn test_power_catalog_suite, test_power_steps_suite, test_power_store_suite;

unit_suite_fn test_commit_doubt_suite, test_dedup_suite, test_webhook_url_suite, test_run_fork_suite;

Suite *test_gate_suite(void);
Suite *test_set_aside_suite(void);
Suite *test_catalog_checker_suite(void);
Suite *test_store_health_suite(void);
Suite *test_unproven_suite(void);
Suite *test_store_life_suite(void);
Suite *test_store_start_suite(void);
Suite *test_catalog_log_suite(void);
Suite *test_acknowledged_suite(void);
Suite *test_db_suite(void);
Suite *test_db_file_suite(void);
Suite *test_log_walk_suite(void);
Suite *test_db_check_suite(void);
Suite *test_db_damage_suite(void);
Suite *test_catalog_suite(void);
Suite *test_part_suite(void);
Suite *test_committer_suite(void);
Suite *test_account_suite(void);
Suite *test_bucket_access_suite(void);
Suite *test_start_damage_suite(void);
Suite *test_key_damage_suite(void);
Suite *test_bucket_suite(void);
Suite *test_bucket_edit_suite(void);
Suite *test_upload_rules_suite(void);
Suite *test_object_change_suite(void);
Suite *test_webhook_row_suite(void);
Suite *test_upload_copy_suite(void);
Suite *test_upload_sweep_suite(void);
Suite *test_bucket_totals_suite(void);
Suite *test_change_feed_suite(void);
Suite *test_bucket_drop_suite(void);
Suite *test_lifecycle_suite(void);
Suite *test_lifecycle_worker_suite(void);
Suite *test_lifecycle_change_suite(void);
Suite *test_lifecycle_cache_suite(void);
Suite *test_object_list_suite(void);
Suite *test_tree_path_suite(void);
Suite *test_tree_suite(void);
Suite *test_batch_suite(void);
Suite *test_run_suite(void);
Suite *test_step_publish_suite(void);
Suite *test_step_path_suite(void);
Suite *test_step_collect_suite(void);
Suite *test_fleet_suite(void);
Suite *test_step_part_suite(void);
Suite *test_adopt_layout_suite(void);
Suite *test_view_suite(void);
Suite *test_view_key_suite(void);
Suite *test_adopt_suite(void);
Suite *test_adopt_row_suite(void);
Suite *test_adopt_step_suite(void);
Suite *test_step_turns_suite(void);
Suite *test_step_watch_suite(void);
Suite *test_step_plan_suite(void);
Suite *test_fold_suite(void);
Suite *test_step_proof_suite(void);
Suite *test_step_part_set_suite(void);
Suite *test_step_anchor_shown_suite(void);
Suite *test_pin_suite(void);
Suite *test_replica_table_suite(void);
Suite *test_fold_row_suite(void);
Suite *test_fold_made_suite(void);
Suite *test_store_suite(void);
Suite *test_store_kill_suite(void);
Suite *test_object_suite(void);
Suite *test_pack_touches_suite(void);
Suite *test_gc_suite(void);
Suite *test_gc_kill_suite(void);
Suite *test_gc_removals_suite(void);
Suite *test_tag_set_suite(void);
Suite *test_step_digest_suite(void);
Suite *test_step_anchor_suite(void);
Suite *test_step_kill_suite(void);
Suite *test_object_put_suite(void);
Suite *test_version_list_suite(void);
Suite *test_version_change_suite(void);
Suite *test_object_delete_suite(void);
Suite *test_object_copy_suite(void);
Suite *test_scratch_suite(void);
Suite *test_derived_suite(void);
Suite *test_derived_recipe_suite(void);
Suite *test_derive_series_suite(void);
Suite *test_derive_worker_suite(void);
Suite *test_derive_kill_suite(void);
Suite *test_file_hash_suite(void);
Suite *test_xet_make_suite(void);
Suite *test_part_map_suite(void);
Suite *test_upload_suite(void);
Suite *test_upload_kill_suite(void);
Suite *test_version_suite(void);
Suite *test_xet_file_suite(void);
Suite *test_shard_put_suite(void);
Suite *test_chunk_answer_suite(void);
Suite *test_xorb_put_suite(void);
Suite *test_damage_book_suite(void);
Suite *test_damage_offer_suite(void);
Suite *test_pack_damage_suite(void);
Suite *test_xorb_repeat_suite(void);
Suite *test_disk_floor_suite(void);
Suite *test_gc_pack_suite(void);
Suite *test_path_hold_suite(void);
Suite *test_pack_row_suite(void);
Suite *test_gc_xorb_suite(void);
Suite *test_xorb_kill_suite(void);
Suite *test_xet_make_kill_suite(void);
Suite *test_helpers_suite(void);
Suite *test_md5_pool_suite(void);
Suite *test_backend_suite(void);
Suite *test_pack_format_suite(void);
Suite *test_pack_writer_suite(void);
Suite *test_pack_cache_suite(void);
Suite *test_pack_index_suite(void);
Suite *test_pack_table_suite(void);
Suite *test_catalog_copy_suite(void);
Suite *test_chunk_index_suite(void);
Suite *test_pack_store_suite(void);
Suite *test_pack_recovery_suite(void);
Suite *test_assemble_suite(void);
Suite *test_ingest_suite(void);
Suite *test_xorb_source_suite(void);
Suite *test_reconstruction_plan_suite(void);
Suite *test_reconstruction_suite(void);
Suite *test_xet_content_suite(void);

unit_suite_fn *const unit_suites[] = {
	test_gate_suite,
	test_helpers_suite, test_md5_pool_suite,
	test_backend_suite,
	test_pack_format_suite,
	test_pack_writer_suite,
	test_pack_cache_suite,
	test_pack_index_suite,
	test_pack_table_suite,
	test_catalog_copy_suite,
	test_chunk_index_suite,
	test_pack_store_suite, test_pack_recovery_suite,
	test_assemble_suite,
	test_ingest_suite,
	test_dedup_suite,
	test_webhook_url_suite,
	test_xorb_source_suite, test_reconstruction_plan_suite,
	test_db_suite, test_acknowledged_suite,
	test_db_file_suite, test_db_check_suite, test_db_damage_suite, test_log_walk_suite, test_catalog_log_suite,
	test_catalog_suite,
	test_part_suite,
	test_committer_suite,
	test_account_suite,
	test_bucket_access_suite,
	test_start_damage_suite,
	test_key_damage_suite,
	test_bucket_suite,
	test_bucket_edit_suite,
	test_upload_rules_suite,
	test_object_change_suite,
	test_webhook_row_suite,
	test_upload_copy_suite,
	test_upload_sweep_suite,
	test_bucket_totals_suite,
	test_bucket_drop_suite,
	test_lifecycle_suite,
	test_lifecycle_worker_suite,
	test_lifecycle_change_suite,
	test_lifecycle_cache_suite,
	test_object_list_suite,
	test_tree_path_suite, test_tree_suite, test_batch_suite,
	test_run_suite,
	test_step_publish_suite,
	test_step_path_suite,
	test_step_collect_suite,
	test_fleet_suite,
	test_step_part_suite,
	test_adopt_layout_suite,
	test_view_suite,
	test_view_key_suite,
	test_adopt_suite,
	test_adopt_row_suite,
	test_adopt_step_suite,
	test_step_turns_suite,
	test_step_watch_suite,
	test_change_feed_suite,
	test_step_plan_suite,
	test_fold_suite,
	test_step_proof_suite,
	test_step_part_set_suite,
	test_step_anchor_shown_suite,
	test_pin_suite,
	test_replica_table_suite,
	test_fold_row_suite,
	test_fold_made_suite,
	test_store_suite, test_store_start_suite, test_store_life_suite, test_unproven_suite, test_set_aside_suite, test_store_health_suite, test_catalog_checker_suite,
	test_store_kill_suite,
	test_object_suite,
	test_pack_touches_suite,
	test_gc_suite,
	test_gc_kill_suite,
	test_gc_removals_suite,
	test_tag_set_suite,
	test_step_digest_suite,
	test_step_anchor_suite,
	test_run_fork_suite,
	test_step_kill_suite,
	test_object_put_suite,
	test_version_list_suite,
	test_version_change_suite,
	test_object_delete_suite,
	test_object_copy_suite,
	test_scratch_suite,
	test_derived_suite,
	test_derived_recipe_suite,
	test_derive_series_suite,
	test_derive_worker_suite,
	test_derive_kill_suite,
	test_file_hash_suite,
	test_xet_make_suite,
	test_part_map_suite,
	test_xet_content_suite, test_reconstruction_suite,
	test_upload_suite,
	test_upload_kill_suite,
	test_version_suite,
	test_xet_file_suite,
	test_shard_put_suite,
	test_chunk_answer_suite,
	test_xorb_put_suite,
	test_damage_book_suite,
	test_damage_offer_suite,
	test_pack_damage_suite,
	test_xorb_repeat_suite,
	test_disk_floor_suite,
	test_gc_pack_suite,
	test_path_hold_suite,
	test_pack_row_suite,
	test_gc_xorb_suite,
	test_xorb_kill_suite,
	test_xet_make_kill_suite,
	test_commit_doubt_suite,
	test_power_catalog_suite,
	test_power_store_suite,
	test_power_steps_suite,
	NULL,
};
