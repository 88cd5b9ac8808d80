// By the prototype: a field that is named submit would hide the form's own method.
HTMLFormElement.prototype.submit.call(document.getElementById('form-post'))
