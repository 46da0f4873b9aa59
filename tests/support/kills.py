"""A server that is killed while others use it, and started again."""
import threading
import time


def kill_under(daemon, works, seconds):
    """Each of the works runs in a thread of its own until the event is set that it is given; SIGKILL comes after so many seconds."""
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(stop,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    daemon.kill()
    stop.set()
    for thread in threads:
        thread.join()
    daemon.start()
