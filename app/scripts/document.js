const LINK = '[data-testid="stSidebarNavLink"]';
const CLOSE = '[data-testid="stSidebarCollapseButton"] button';

export default ({ data }) => {
  document.documentElement.lang = data.tag;
  if (document.documentElement.dataset.kbMenu) return;
  document.documentElement.dataset.kbMenu = "closes";
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(LINK)) {
      setTimeout(() => document.querySelector(CLOSE)?.click());
    }
  });
};
