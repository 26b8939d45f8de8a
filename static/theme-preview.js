// The playground's form needs a checkout: the demo shop's server makes one, and the page is opened again with its id.

async function openWithCheckout() {
  const answer = await fetch("/demo/checkout", { method: "POST", body: new URLSearchParams({ mug: "1" }) });
  const { id } = await answer.json();
  if (!id) throw new Error("no checkout");
  const address = new URL(location.href);
  address.searchParams.set("checkoutId", id);
  location.replace(address);
}

openWithCheckout().catch(() => {
  const place = document.querySelector("[role=status]");
  if (place) place.textContent = "No checkout was made: is the demo shop set up?";
});
