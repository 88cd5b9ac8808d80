// Calls the method of the prototype: a field named submit would hide the form's own.
HTMLFormElement.prototype.submit.call(document.getElementById('form-post'))
