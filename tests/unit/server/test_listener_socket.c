#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/control_socket.h"
#include "server/data_folder.h"
#include "server/listener_socket.h"

static const char *const tcp[] = {"127.0.0.1:0", "localhost:0", ":0"};

START_TEST(tcp_addresses_open_and_say_their_port)
{
	struct listener_socket opened;
	struct error err = {0};
	struct buffer text;
	buffer_init(&text, 1000);
	ck_assert_msg(listener_socket_open(&opened, tcp[_i], &err) == 0, "%s", err.text);
	listener_socket_print(&opened, "https", &text);
	ck_assert_msg(strncmp(buffer_text(&text), "https://", 8) == 0 && strrchr(buffer_text(&text), ':')[1] != '0', "%s", buffer_text(&text));
	listener_socket_close(&opened);
	buffer_release(&text);
}
END_TEST

static const char *const refused[] = {"", "9000", "localhost", "127.0.0.1:", "::1:9000", "[::1]", "[]:9000", "127.0.0.1:http", "127.0.0.1:65536", "unix:",
	"256.1.1.1:0"};

START_TEST(other_addresses_are_refused)
{
	struct listener_socket opened;
	struct error err = {0};
	ck_assert_int_eq(listener_socket_open(&opened, refused[_i], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(a_port_in_use_is_the_systems_word)
{
	struct listener_socket first;
	struct listener_socket second;
	struct error err = {0};
	struct buffer text;
	buffer_init(&text, 1000);
	ck_assert_int_eq(listener_socket_open(&first, "127.0.0.1:0", &err), 0);
	listener_socket_print(&first, "", &text);
	ck_assert_int_eq(listener_socket_open(&second, buffer_text(&text) + 3, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, buffer_text(&text) + 3));
	listener_socket_close(&first);
	buffer_release(&text);
}
END_TEST

START_TEST(a_unix_socket_has_its_mode_and_goes_when_closed)
{
	char *const folder = unit_scratch_make();
	char *const path = data_folder_path(folder, "s");
	struct listener_socket opened;
	struct error err = {0};
	struct stat facts;
	ck_assert_int_eq(listener_socket_open_unix(&opened, path, 0600, &err), 0);
	ck_assert_int_eq(stat(path, &facts), 0);
	ck_assert_uint_eq(facts.st_mode & 0777, 0600);
	listener_socket_close(&opened);
	ck_assert(!file_exists(path));
	free(path);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_dead_socket_is_replaced_and_a_live_one_is_not)
{
	char *const folder = unit_scratch_make();
	char *const path = data_folder_path(folder, "s");
	struct listener_socket first;
	struct listener_socket second;
	struct error err = {0};
	ck_assert_int_eq(listener_socket_open_unix(&first, path, 0600, &err), 0);
	ck_assert_int_eq(listener_socket_open_unix(&second, path, 0600, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	close(first.fd); /* as a killed server leaves it */
	ck_assert_int_eq(listener_socket_open_unix(&second, path, 0600, &err), 0);
	listener_socket_close(&second);
	free(first.unix_path);
	free(path);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_file_in_the_way_is_left_alone)
{
	char *const folder = unit_scratch_make();
	char *const path = data_folder_path(folder, "s");
	struct listener_socket opened;
	struct error err = {0};
	ck_assert_int_eq(file_publish(file_system(), path, span_text("mine"), 0600, &err), 0);
	ck_assert_int_eq(listener_socket_open_unix(&opened, path, 0600, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert(file_exists(path));
	free(path);
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_deep_data_folder_still_has_its_control_socket)
{
	char *const scratch = unit_scratch_make();
	char deep[101] = {0};
	memset(deep, 'd', sizeof deep - 1);
	char *const folder = data_folder_path(scratch, deep);
	char *const path = data_folder_path(folder, "control.sock");
	struct listener_socket opened;
	struct control_place place;
	struct error err = {0};
	ck_assert_int_eq(file_make_folder(folder, 0700, &err), 0);
	control_place_init(&place, folder);
	ck_assert_msg(listener_socket_open_unix(&opened, place.path, 0600, &err) == 0, "%s", err.text);
	ck_assert(file_exists(path));
	listener_socket_close(&opened);
	ck_assert(!file_exists(path));
	control_place_release(&place);
	free(path);
	free(folder);
	unit_scratch_remove(scratch);
}
END_TEST

START_TEST(peers_of_our_own_user_are_ours)
{
	int pair[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert(control_socket_is_ours(pair[0]));
	close(pair[0]);
	close(pair[1]);
	ck_assert(!control_socket_is_ours(-1));
}
END_TEST

Suite *test_listener_socket_suite(void);

Suite *test_listener_socket_suite(void)
{
	Suite *const suite = suite_create("listener_socket");
	TCase *const tcase = tcase_create("listener_socket");
	tcase_add_loop_test(tcase, tcp_addresses_open_and_say_their_port, 0, sizeof tcp / sizeof tcp[0]);
	tcase_add_loop_test(tcase, other_addresses_are_refused, 0, sizeof refused / sizeof refused[0]);
	tcase_add_test(tcase, a_port_in_use_is_the_systems_word);
	tcase_add_test(tcase, a_unix_socket_has_its_mode_and_goes_when_closed);
	tcase_add_test(tcase, a_dead_socket_is_replaced_and_a_live_one_is_not);
	tcase_add_test(tcase, a_file_in_the_way_is_left_alone);
	tcase_add_test(tcase, a_deep_data_folder_still_has_its_control_socket);
	tcase_add_test(tcase, peers_of_our_own_user_are_ours);
	suite_add_tcase(suite, tcase);
	return suite;
}
