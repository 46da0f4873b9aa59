// Runs before the first paint, so that a chosen theme does not flash. Without a choice the browser's holds.
(function () {
  try {
    var theme = localStorage.getItem('deltabucket-theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch (refused) { /* storage is off: the browser's own theme holds */ }
})();
