#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
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
	ck_assert_msg(strncmp(buffer_text(&text), "https://", 8) == 0 &&
			strrchr(buffer_text(&text), ':')[1] != '0',
		"%s", buffer_text(&text));
	listener_socket_close(&opened);
	buffer_release(&text);
}
END_TEST

static const char *const refused[] = {"", "9000", "localhost", "127.0.0.1:", "::1:9000", "[::1]",
	"[]:9000", "127.0.0.1:http", "127.0.0.1:65536", "unix:", "256.1.1.1:0"};

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

static const struct {
	const char *address;
	const char *says;
} not_ours[] = {
	{"192.0.2.1:0",
		"cannot listen on 192.0.2.1:0: Cannot assign requested address; this"
		" machine does not have it; --listen takes one"},
	{"256.1.1.1:0", "; --listen takes an address of this machine"},
};

START_TEST(an_address_that_cannot_be_had_is_refused_with_what_helps)
{
	struct error err = {0};
	ck_assert_int_eq(listener_socket_try(not_ours[_i].address, &err), -1);
	ck_assert_msg(strstr(err.text, not_ours[_i].says) != NULL, "%s", err.text);
}
END_TEST

START_TEST(trying_an_address_leaves_it_free)
{
	struct listener_socket opened;
	struct error err = {0};
	char address[64];
	ck_assert_int_eq(listener_socket_open(&opened, "127.0.0.1:0", &err), 0);
	snprintf(address, sizeof address, "127.0.0.1:%u", listener_socket_port(&opened));
	ck_assert_int_eq(listener_socket_try(address, &err), -1);
	ck_assert_msg(strstr(err.text,
			      "another program listens there; stop it, or name a free port"
			      " with --listen HOST:PORT") != NULL,
		"%s", err.text);
	listener_socket_close(&opened);
	ck_assert_int_eq(listener_socket_try(address, &err), 0);
	ck_assert_int_eq(listener_socket_try(address, &err), 0);
	ck_assert_int_eq(listener_socket_try("unix:/nonexistent/folder/s", &err), 0);
}
END_TEST

START_TEST(a_socket_on_all_addresses_is_shown_by_one_that_works_here)
{
	struct listener_socket opened;
	struct error err = {0};
	struct buffer text;
	char wanted[100];
	buffer_init(&text, 1000);
	ck_assert_int_eq(listener_socket_open(&opened, "0.0.0.0:0", &err), 0);
	listener_socket_print(&opened, "https", &text);
	snprintf(wanted, sizeof wanted, "https://127.0.0.1:%u (listens on all addresses)",
		listener_socket_port(&opened));
	ck_assert_str_eq(buffer_text(&text), wanted);
	listener_socket_close(&opened);
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
	close(first.fd); /* as after a killed server */
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
	ck_assert_int_eq(file_make_folder(file_system(), folder, 0700, &err), 0);
	control_place_init(&place, folder);
	ck_assert_msg(
		listener_socket_open_unix(&opened, place.path, 0600, &err) == 0, "%s", err.text);
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

/* Connects from another process, which becomes `user` if it may, as SO_PEERCRED shows. */
static uid_t connect_as(const struct sockaddr_un *address, socklen_t length, uid_t user)
{
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		const bool changed = setresuid(user, user, user) == 0;
		const int connected = connect(fd, (const struct sockaddr *)address, length);
		_exit(connected != 0 ? 2 : !changed);
	}
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 2);
	return WEXITSTATUS(status) == 0 ? user : geteuid();
}

/* Users that are neither the server's user nor root, also those with the numbers beside them. The
 * socket has a name from the system and no place in a folder, so that only the check can stop
 * them. */
START_TEST(peers_of_other_users_are_not_ours)
{
	const uid_t users[] = {geteuid(), 0, 1, geteuid() + 1, 65534};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof address;
	const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(
		bind(listening, (struct sockaddr *)&address, sizeof address.sun_family), 0);
	ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&address, &length), 0);
	ck_assert_int_eq(listen(listening, 8), 0);
	for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
		const uid_t peer = connect_as(&address, length, users[i]);
		const int fd = accept(listening, NULL, NULL);
		ck_assert_int_ge(fd, 0);
		ck_assert_msg(control_socket_is_ours(fd) == (peer == geteuid() || peer == 0),
			"user %u", (unsigned)peer);
		close(fd);
	}
	close(listening);
}
END_TEST

Suite *test_listener_socket_suite(void);

Suite *test_listener_socket_suite(void)
{
	Suite *const suite = suite_create("listener_socket");
	TCase *const tcase = tcase_create("listener_socket");
	tcase_add_loop_test(
		tcase, tcp_addresses_open_and_say_their_port, 0, sizeof tcp / sizeof tcp[0]);
	tcase_add_loop_test(
		tcase, other_addresses_are_refused, 0, sizeof refused / sizeof refused[0]);
	tcase_add_test(tcase, a_port_in_use_is_the_systems_word);
	tcase_add_loop_test(tcase, an_address_that_cannot_be_had_is_refused_with_what_helps, 0,
		sizeof not_ours / sizeof not_ours[0]);
	tcase_add_test(tcase, trying_an_address_leaves_it_free);
	tcase_add_test(tcase, a_socket_on_all_addresses_is_shown_by_one_that_works_here);
	tcase_add_test(tcase, a_unix_socket_has_its_mode_and_goes_when_closed);
	tcase_add_test(tcase, a_dead_socket_is_replaced_and_a_live_one_is_not);
	tcase_add_test(tcase, a_file_in_the_way_is_left_alone);
	tcase_add_test(tcase, a_deep_data_folder_still_has_its_control_socket);
	tcase_add_test(tcase, peers_of_our_own_user_are_ours);
	tcase_add_test(tcase, peers_of_other_users_are_not_ours);
	suite_add_tcase(suite, tcase);
	return suite;
}
