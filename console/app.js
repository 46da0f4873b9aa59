// Signs in with a key or with a one-time link, and says as whom.

const word = document.getElementById('word');

async function ask(method, path, body) {
	const headers = { 'X-Deltabucket-Console': '1' };
	if (body)
		headers['Content-Type'] = 'application/json';
	const reply = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
	const answer = await reply.json();
	if (!reply.ok)
		throw new Error(answer.error.message);
	return answer;
}

async function signIn(credentials) {
	try {
		const session = await ask('POST', '/-/sessions', credentials);
		word.textContent = `Signed in as ${session.name || session.key_id}.`;
	} catch (error) {
		word.textContent = error.message;
	}
}

document.getElementById('sign-in').addEventListener('submit', event => {
	event.preventDefault();
	signIn({ key_id: document.getElementById('key').value, secret: document.getElementById('secret').value });
});

const link = /^#link=(.+)$/.exec(location.hash);
if (link) {
	history.replaceState(null, '', location.pathname);
	signIn({ link: link[1] });
}
